/// Manual tactics: named values, and the placement of each along one axis.
///
/// Source    PartIR, section 3 and appendix A.6
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include <partita/schedule/entries.hpp>
#include <partita/schedule/kept_function.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/support/kept_name.hpp>
#include <partita/support/separate.hpp>
#include <partita/support/syntax.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The type of `replicated`.
struct replicated_t {
  /// `replicated(p)` returns the values that are replicated by default, see replicated_by_default.
  template <class Partitioned>
  constexpr auto operator()(const Partitioned& p) const {
    return replicated_by_default(p);
  }
};
/// The type of `first_divisible_dim`.
struct first_divisible_dim_t {};
/// The type of `unknown`.
struct unknown_t {};

/// Placement that keeps a value, and its next state, replicated along the axis (`atomic`).
inline constexpr replicated_t replicated{};
/// Placement on the first dimension whose local size the axis divides. For layers stacked for a
/// loop, it is the first such dimension of a layer. A value without such a dimension is left as it
/// is, and the tactic's report notes that; a tactic that pads shards its largest dimension instead.
inline constexpr first_divisible_dim_t first_divisible_dim{};
/// Placement that leaves the value to propagation.
inline constexpr unknown_t unknown{};

/// The placement of a value along an axis: a dimension, `replicated`, `first_divisible_dim`,
/// `unknown`, or the result of a function of its name and shape. The function may be a function
/// pointer, a lambda, or any class with a const call operator. Its captures are copied and may have
/// at most 64 bytes; in constant evaluation they must not contain pointers or references (see
/// std::bit_cast).
class placement {
 public:
  enum kind_type : std::uint8_t { dimension, whole, first_divisible, leave, callable };

  template <class Int>
  requires(std::is_integral_v<Int> && !std::is_same_v<Int, bool>) constexpr placement(Int d)
      : kind(dimension), dim(static_cast<int>(d)) {}
  constexpr placement(replicated_t) : kind(whole) {}
  constexpr placement(first_divisible_dim_t) : kind(first_divisible) {}
  constexpr placement(unknown_t) : kind(leave) {}
  template <class F>
  requires(std::is_class_v<F>&& std::is_convertible_v<F, placement_function>) constexpr placement(
      F f)
      : kind(callable), function(f) {}
  constexpr placement(placement_function f) : kind(callable), function(f) {}
  template <class F>
  requires(std::is_class_v<F> && !std::is_convertible_v<F, placement_function> &&
           std::is_invocable_r_v<placement, const F&, std::string_view,
                                 const shape&>) constexpr placement(const F& f)
      : kind(callable), function(f) {}

  kind_type kind = leave;
  int dim = -1;
  schedule_detail::kept_function function;
};

template <class F>
constexpr placement schedule_detail::kept_function::call_bytes(const kept_function& k,
                                                               std::string_view name,
                                                               const shape& global) {
  if constexpr (made_anew<F>) return F{}(name, global);
  std::array<std::byte, sizeof(F)> bytes = {};
  for (std::size_t i = 0; i < sizeof(F); ++i) bytes[i] = k.bytes_[i];
  return std::bit_cast<F>(bytes)(name, global);
}
constexpr placement schedule_detail::kept_function::operator()(std::string_view name,
                                                               const shape& global) const {
  return call_ != nullptr ? call_(*this, name, global) : function_(name, global);
}

/// One entry of a manual tactic. The name selects an input, a tag or an output; all of them below a
/// prefix ("params" selects "params.w1" and "params.layers.0.up"); or those that match a pattern
/// ("params.layers.*.up"; `**` also matches dots). If it selects none of these, it selects inner
/// values in the same way, provided that the program has names for them (program::labels). An entry
/// for a tag also applies to the tag's cotangent ("h" selects "grad.h"), unless another entry
/// selects the cotangent by its own name or it is already placed along the axis.
struct manual_entry {
  std::string_view name;
  placement where;
};

namespace schedule_detail {

/// A copy of a manual entry that owns its strings.
struct kept_manual_entry : kept_selector {
  placement where = unknown;
  constexpr kept_manual_entry() = default;
  constexpr explicit kept_manual_entry(const manual_entry& e)
      : kept_selector(e.name), where(e.where) {}
};

/// The actions of a manual tactic, independent of the number of its entries.
struct manual_actions {
  std::string_view axis_;
  span<const kept_manual_entry> entries_;
  uneven uneven_ = uneven::unsaid;

  constexpr void apply(tactic_context& c) const;
  /// Implements `apply`.
  constexpr void place_all(tactic_context& c) const {
    const int axis = c.axis(axis_);
    if (axis < 0) return;
    vec<placed> states;  // outputs that get the placement of their input
    const auto who = [&] {
      const syntax s = c.core().advice();
      return concat(in_syntax(s, "manual(\"", "manual \""), axis_, in_syntax(s, "\")", "\""));
    };
    entry_list(entries_, who).for_each(c, [&](const selected_value& v, std::size_t e) {
      if (!v.is_cotangent || !c.is_placed(v.value.value, axis))
        place(c, v, axis, entries_[e].where, states);
    });
    c.propagate();
    bool again = false;
    for (const auto& s : states) {
      if (c.error || c.dim_of(s.value, axis) == s.dim) continue;
      // The user did not name the dimension, so the one that propagation chose stays; note_states
      // adds a note.
      if (!s.named && c.is_tiled(s.value, axis)) continue;
      c.tile(s.value, s.dim, axis, uneven_);
      again = true;
    }
    if (again) c.propagate();
    c.settle();
  }

 private:
  struct placed {
    value_id value = -1;
    int dim = -1;
    bool named = true;  ///< false if it is the first divisible dimension of its input
  };

  constexpr void place(tactic_context& c, const selected_value& v, int axis, const placement& given,
                       vec<placed>& states) const {
    if (given.kind == placement::callable)
      place_as(c, v.value, axis, given.function(v.name, c.global_shape(v.value.value)), states);
    else
      place_as(c, v.value, axis, given, states);
  }
  constexpr void place_as(tactic_context& c, const named_value& v, int axis, const placement& where,
                          vec<placed>& states) const {
    const value_id input = v.state;
    switch (where.kind) {
      case placement::whole:
        c.atomic(v.value, axis);
        break;
      case placement::dimension:
        if (input >= 0)
          states.push_back({v.value, where.dim});
        else
          c.tile(v.value, where.dim, axis, uneven_);
        break;
      case placement::first_divisible:
        if (input >= 0) {
          const int dim = c.dim_of(input, axis);
          if (dim >= 0) states.push_back({v.value, dim, false});
        } else if (!c.is_tiled(v.value, axis)) {
          tile_first_divisible(c, v, axis);
        }
        break;
      case placement::leave:
        break;
      case placement::callable:
        c.error.record("S009", "manual(\"", axis_,
                       "\"): the placement function returns another function for \"", v.name,
                       "\"; return a dimension, replicated, first_divisible_dim or unknown");
        break;
    }
  }
  constexpr void tile_first_divisible(tactic_context& c, const named_value& v, int axis) const {
    const shape local = c.local_shape(v.value);
    const int first = c.is_stacked(v.value) ? 1 : 0;
    int largest = -1;
    for (int d = first; d < local.rank; ++d) {
      if (local[d] > 0 && local[d] % c.axis_size(axis) == 0)
        return c.tile(v.value, d, axis, uneven_);
      if (local[d] > 0 && (largest < 0 || local[d] > local[largest])) largest = d;
    }
    if (local.rank == first) return;  // a scalar has no dimension to shard
    if (largest >= 0 && uneven_ == uneven::pad) return c.tile(v.value, largest, axis, uneven_);
    text name;
    c.core().named.print(name, axis);
    c.note(concat("\"", v.name, "\" ", c.global_shape(v.value), " has no dimension ",
                  first > 0 ? "of a layer " : "", "that axis ", name, " (", c.axis_size(axis),
                  ") divides; it stays as it is"));
  }
};

}  // namespace schedule_detail

namespace separate {
void apply(const schedule_detail::manual_actions& p, tactic_context& c);
}

namespace schedule_detail {
constexpr void manual_actions::apply(tactic_context& c) const {
  PARTITA_RETURN(place_all(c), separate::apply(*this, c));
}
}  // namespace schedule_detail

/// Shards named values along one axis of the mesh, or along a sub-axis: `manual("A:(1)4", ...)`
/// shards along the most major part of "A", of size 4, and leaves the rest of the axis to other
/// tactics.
///
/// Effect    `tile` or `atomic` for each selected value, in the order of the entries, then
///           `propagate`. If several entries select a value, the one with the longest name applies.
///           An output with the name of an input is that input's next state and gets the same
///           placement, so the results of one step fit the arguments of the next. If
///           first_divisible_dim chose the input's dimension and propagation chose another one for
///           the output, the output keeps it, and a note reports that. Conflicts between the
///           tactic's own placements are settled by cost, see settle_conflicts.
/// Legal     if the axis divides each dimension (or the tactic has uneven::pad), no value is
///           sharded twice, and no axis shards a value on two dimensions
/// Pros      exact control of single values; propagation shards everything that follows from them
/// Cons      one axis at a time, and names have to be listed or matched
/// Collectives  those that propagation implies: all_reduce or reduce_scatter where a contracted
///           dimension is sharded, all_gather, all_to_all or all_slice where layouts of producer
///           and user differ, permute where an op reads elements of neighbouring blocks
/// Errors    S001 unknown axis, S002 dimension out of range, S003 size does not divide, S004 axis
///           used twice, S005 already sliced, S006 no value has that name or prefix, S007 two
///           entries have the same name, S009 a placement function returns a function, S021 not a
///           sub-axis, S022 a sub-axis does not divide its axis, S023 the axis is already split
///           differently, S024 one tactic pads a dimension that another one refuses to pad
/// Source    PartIR, section 3 and appendix A.6
template <std::size_t N>
class manual_tactic {
 public:
  constexpr manual_tactic(std::string_view axis, const manual_entry (&entries)[N],
                          std::string_view name, uneven policy = uneven::unsaid)
      : manual_tactic(axis, entries, name, policy, std::make_index_sequence<N>{}) {}
  constexpr std::string_view name() const { return name_; }
  /// Returns the same tactic with another name.
  constexpr manual_tactic named(std::string_view n) const {
    manual_tactic t = *this;
    t.name_ = n;
    return t;
  }
  constexpr void apply(tactic_context& c) const {
    schedule_detail::manual_actions{axis_, {entries_, N}, uneven_}.apply(c);
  }

 private:
  template <std::size_t... I>
  constexpr manual_tactic(std::string_view axis, const manual_entry (&entries)[N],
                          std::string_view name, uneven policy, std::index_sequence<I...>)
      : axis_(axis),
        name_(name),
        uneven_(policy),
        entries_{schedule_detail::kept_manual_entry(entries[I])...} {}

  kept_name axis_, name_;
  uneven uneven_;
  schedule_detail::kept_manual_entry entries_[N];
};

/// Returns a manual tactic: `manual("B", {{"x", 0}, {"params", replicated}})`. The name appears in
/// reports; `policy` applies to dimensions that the axis does not divide.
template <std::size_t N>
constexpr manual_tactic<N> manual(std::string_view axis, const manual_entry (&entries)[N],
                                  std::string_view name = "manual",
                                  uneven policy = uneven::unsaid) {
  return {axis, entries, name, policy};
}
template <std::size_t N>
constexpr manual_tactic<N> manual(std::string_view axis, const manual_entry (&entries)[N],
                                  uneven policy) {
  return {axis, entries, "manual", policy};
}

}  // namespace partita
