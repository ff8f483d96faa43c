/// Layouts over several axes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <partita/schedule/entries.hpp>
#include <partita/schedule/manual.hpp>

namespace partita {

/// The axes that slice a dimension, major to minor: `"B"`, `{"B", "M"}`, or `{}` for an unsharded
/// one. Each is an axis of the mesh or a sub-axis, `"B:(1)2"`.
class dimension_axes {
 public:
  constexpr dimension_axes() = default;
  constexpr dimension_axes(const char* axis) : dimension_axes({std::string_view(axis)}) {}
  constexpr dimension_axes(std::string_view axis) : dimension_axes({axis}) {}
  constexpr dimension_axes(std::initializer_list<std::string_view> axes) {
    for (const std::string_view axis : axes) {
      if (count < max_axes) names[count] = axis;
      ++count;
    }
  }

  std::string_view names[max_axes] = {};
  int count = 0;  ///< as specified; may exceed max_axes
};

/// The axes that slice each dimension, as in JAX's PartitionSpec: `{"B", {}, {"M", "S"}}`.
/// Dimensions that are not listed, and axes that are not used, are left to propagation and to later
/// tactics. Alternatively `replicated`: unsharded along all axes.
class dimensions_axes {
 public:
  constexpr dimensions_axes(std::initializer_list<dimension_axes> dimensions) {
    for (const dimension_axes& d : dimensions) {
      for (int i = 0; i < d.count && i < max_axes; ++i) {
        if (count < max_axes) {
          axes[count] = d.names[i];
          dims[count] = rank;
        }
        ++count;
      }
      if (d.count > max_axes) count = max_axes + 1;
      ++rank;
    }
  }
  constexpr dimensions_axes(replicated_t) : whole(true) {}

  std::string_view axes[max_axes] = {};
  int dims[max_axes] = {};
  int count = 0;  ///< as specified; may exceed max_axes
  int rank = 0;   ///< number of dimensions specified
  bool whole = false;
};

/// An entry of `shard`; names select values as in manual_entry.
struct shard_entry {
  std::string_view name;
  dimensions_axes where;
};

namespace schedule_detail {

/// One name for each axis that a mesh may have. (Separate members: GCC 12 does not accept an array
/// of such classes in a constant.)
class kept_axes {
 public:
  constexpr void put(int i, std::string_view name) {
    kept_name* const all[] = {&a_, &b_, &c_, &d_, &e_, &f_, &g_, &h_};
    *all[i] = kept_name(name);
  }
  constexpr std::string_view operator[](int i) const {
    const kept_name* const all[] = {&a_, &b_, &c_, &d_, &e_, &f_, &g_, &h_};
    return *all[i];
  }

 private:
  kept_name a_, b_, c_, d_, e_, f_, g_, h_;
  static_assert(max_axes == 8);
};

/// A copy of a shard entry that owns its strings.
struct kept_shard_entry : kept_selector {
  kept_axes axes;
  int dims[max_axes] = {};
  int count = 0, rank = 0;
  bool whole = false;
  constexpr kept_shard_entry() = default;
  constexpr explicit kept_shard_entry(const shard_entry& e)
      : kept_selector(e.name), count(e.where.count), rank(e.where.rank), whole(e.where.whole) {
    for (int i = 0; i < count && i < max_axes; ++i) {
      axes.put(i, e.where.axes[i]);
      dims[i] = e.where.dims[i];
    }
  }
};

/// The actions of a shard tactic, independent of the number of its entries.
struct shard_actions {
  span<const kept_shard_entry> entries_;
  std::string_view name_;
  uneven uneven_ = uneven::unsaid;

  constexpr void apply(tactic_context& c) const {
    for (const kept_shard_entry& e : entries_) check(c, e);
    vec<selected_value> states;  // outputs that get the placement of their input
    vec<std::size_t> line;       // of each
    const auto who = [&] { return concat("shard \"", name_, '"'); };
    entry_list(entries_, who).for_each(c, [&](const selected_value& v, std::size_t e) {
      if (v.value.state >= 0 && !entries_[e].whole) {
        states.push_back(v);
        line.push_back(e);
      } else {
        place(c, v, entries_[e]);
      }
    });
    c.propagate();
    for (std::size_t i = 0; i < states.size(); ++i) place(c, states[i], entries_[line[i]]);
    if (!states.empty()) c.propagate();
    c.settle();
  }

 private:
  /// Errors    S033 more axes than a mesh may have, S004 an axis is used twice
  constexpr void check(tactic_context& c, const kept_shard_entry& e) const {
    if (e.count > max_axes)
      c.error.record("S033", "shard \"", name_, "\": \"", e.name.view(), "\" has more than ",
                     max_axes, " axes, the maximum of a mesh");
    for (int i = 1; i < e.count && !c.error; ++i)
      for (int before = 0; before < i && !c.error; ++before)
        if (e.axes[i] == e.axes[before])
          c.error.record("S004", "shard \"", name_, "\": \"", e.name.view(), "\" uses axis \"",
                         e.axes[i], "\" twice, for dimensions ", e.dims[before], " and ", e.dims[i],
                         "; remove one of them");
  }
  constexpr void place(tactic_context& c, const selected_value& v,
                       const kept_shard_entry& e) const {
    const value_id value = v.value.value;
    if (c.error) return;
    if (e.rank > c.global_shape(value).rank)
      return c.error.record("S034", "shard \"", name_, "\": \"", v.value.name, "\" ",
                            c.global_shape(value), " is given the axes of ", e.rank,
                            " dimensions; it has ", c.global_shape(value).rank);
    for (int axis = 0; e.whole && axis < c.mesh().rank; ++axis)
      if (!v.is_cotangent || !c.is_placed(value, axis)) c.atomic(value, axis);
    for (int i = 0; i < e.count; ++i) {
      const int axis = c.axis(e.axes[i]);
      if (c.error) return;
      if (!v.is_cotangent || !c.is_placed(value, axis)) c.tile(value, e.dims[i], axis, uneven_);
    }
  }
};

}  // namespace schedule_detail

/// The tactic that `shard` returns.
template <std::size_t N>
class shard_tactic {
 public:
  constexpr shard_tactic(const shard_entry (&entries)[N], std::string_view name, uneven policy)
      : shard_tactic(entries, name, policy, std::make_index_sequence<N>{}) {}
  constexpr std::string_view name() const { return name_; }
  /// Returns the same tactic with another name.
  constexpr shard_tactic named(std::string_view n) const {
    shard_tactic t = *this;
    t.name_ = n;
    return t;
  }
  constexpr void apply(tactic_context& c) const {
    schedule_detail::shard_actions{{entries_, N}, name_, uneven_}.apply(c);
  }

 private:
  template <std::size_t... I>
  constexpr shard_tactic(const shard_entry (&entries)[N], std::string_view name, uneven policy,
                         std::index_sequence<I...>)
      : name_(name), uneven_(policy), entries_{schedule_detail::kept_shard_entry(entries[I])...} {}

  kept_name name_;
  uneven uneven_;
  schedule_detail::kept_shard_entry entries_[N];
};

/// Returns a tactic that gives named values a layout over several axes before anything propagates,
/// in the notation of JAX's PartitionSpec:
/// `shard({{"x", {"B", "M"}}, {"w", {{}, "M"}}, {"h", {{"B", "M"}}}})`. Axes of a dimension are
/// listed from major to minor, independent of their order in the mesh. The layout of a value and
/// that of its users may differ.
///
/// Effect    `tile` for each selected value, dimension and axis, or `atomic` for each axis if it is
///           `replicated`; then `propagate`. Next states get the layout of their input. Conflicts
///           between the layouts are settled by cost, see settle_conflicts.
/// Legal     as for `manual`, along each of the axes
/// Pros      one entry states a complete layout, and the axes of a dimension may be in any order
/// Cons      all axes propagate at once; cost, not the user, decides which of them comes first
/// Collectives  those that propagation implies, as for `manual`
/// Errors    those of `manual`, S033 more axes than a mesh may have, S034 more dimensions than the
///           value has
template <std::size_t N>
constexpr shard_tactic<N> shard(const shard_entry (&entries)[N], std::string_view name = "shard",
                                uneven policy = uneven::unsaid) {
  return {entries, name, policy};
}

}  // namespace partita
