/// Manual tactics: named values, and where each is to lie along one axis.
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
#include <partita/support/vec.hpp>

namespace partita {

struct replicated_t {
  /// `replicated(p)`: what is replicated although nobody asked for it, see replicated_by_default.
  template <class Partitioned>
  constexpr auto operator()(const Partitioned& p) const {
    return replicated_by_default(p);
  }
};
struct first_divisible_dim_t {};
struct unknown_t {};

/// Keeps the value whole along the axis (`atomic`), and its updated version too.
inline constexpr replicated_t replicated{};
/// The first dimension whose local size the axis divides; of layers that are stacked for a loop the
/// first one of a layer. A value that has none stays as it is, which the tactic's report says; a
/// tactic that pads takes its largest dimension.
inline constexpr first_divisible_dim_t first_divisible_dim{};
/// Leaves the value to propagation.
inline constexpr unknown_t unknown{};

/// Where a value lies along an axis: a dimension, `replicated`, `first_divisible_dim`, `unknown`,
/// or what a function of its name and shape says: a function, a lambda, or any other class with a
/// const call operator. It may capture, at most 64 bytes, which are copied; in constant evaluation
/// no pointers and references (see std::bit_cast).
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

/// One line of a manual tactic. The name selects an input, a tag or an output, or all those below a
/// prefix ("params" selects "params.w1" and "params.layers.0.up"), or those that a pattern stands
/// for ("params.layers.*.up"; `**` goes over dots). One that selects none of them selects inner
/// values in the same way, where the program has names for them (program::labels). With a tag it
/// selects the tag's cotangent, "grad.h" with "h", which takes the same placement if no entry
/// selects its own name and nothing has placed it along the axis.
struct manual_entry {
  std::string_view name;
  placement where;
};

namespace schedule_detail {

/// A line of a manual tactic that outlives the strings it was made of.
struct kept_manual_entry : kept_selector {
  placement where = unknown;
  constexpr kept_manual_entry() = default;
  constexpr explicit kept_manual_entry(const manual_entry& e)
      : kept_selector(e.name), where(e.where) {}
};

/// What a manual tactic does, whether its lines are known to the compiler or not.
struct placing {
  std::string_view axis_;
  span<const kept_manual_entry> entries_;
  uneven uneven_ = uneven::unsaid;

  constexpr void apply(tactic_context& c) const;
  /// What `apply` does.
  constexpr void place_all(tactic_context& c) const {
    const int axis = c.axis(axis_);
    if (axis < 0) return;
    vec<placed> states;  // outputs that must end up as their input
    const auto who = [&] { return concat("manual(\"", axis_, "\")"); };
    entry_list(entries_, who).for_each(c, [&](const selected_value& v, std::size_t e) {
      if (!v.is_cotangent || !c.is_placed(v.value.value, axis))
        place(c, v, axis, entries_[e].where, states);
    });
    c.propagate();
    bool again = false;
    for (const auto& s : states) {
      if (c.error || c.dim_of(s.value, axis) == s.dim) continue;
      // Nobody named the dimension: what propagation took instead stays, and note_states tells.
      if (!s.named && c.is_tiled(s.value, axis)) continue;
      c.tile(s.value, s.dim, axis, uneven_);
      again = true;
    }
    if (again) c.propagate();
  }

 private:
  struct placed {
    value_id value = -1;
    int dim = -1;
    bool named = true;  ///< else it is the first divisible one of its input
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
        c.error.record("S009", "manual(\"", axis_, "\"): the placement function gives for \"",
                       v.name,
                       "\" another function; a dimension, replicated, first_divisible_dim or "
                       "unknown is needed");
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
    if (local.rank == first) return;  // a scalar has nothing to shard
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
void apply(const schedule_detail::placing& p, tactic_context& c);
}

namespace schedule_detail {
constexpr void placing::apply(tactic_context& c) const {
  PARTITA_RETURN(place_all(c), separate::apply(*this, c));
}
}  // namespace schedule_detail

/// Shards named values along one axis of the mesh, or along a part of one: `manual("A:(1)4", ...)`
/// is about the first 4 positions of "A", each with what is left of it.
///
/// Effect    `tile` or `atomic` for each selected value, in the order of the entries, then
///           `propagate`. Of several entries that select a value the one with the longest name
///           counts. An output that has the name of an input is that input's next state: it takes
///           the same placement, so that the results of one step fit the arguments of the next;
///           but where first_divisible_dim chose it and propagation another one, that stays, and
///           a note says so.
///           A size that the axis does not divide is an error, unless the tactic says uneven::pad.
/// Errors    S001 unknown axis, S002 dimension out of range, S003 size does not divide, S004 axis
///           used twice, S005 already sliced, S006 nothing has that name or prefix, S007 two
///           entries of one name, S009 a function that gives a function, S021 not a sub-axis, S022
///           a sub-axis does not divide its axis, S023 the axis is split otherwise, S024 one tactic
///           pads what another one refuses to pad
template <std::size_t N>
class manual_tactic {
 public:
  constexpr manual_tactic(std::string_view axis, const manual_entry (&entries)[N],
                          std::string_view name, uneven policy = uneven::unsaid)
      : manual_tactic(axis, entries, name, policy, std::make_index_sequence<N>{}) {}
  constexpr std::string_view name() const { return name_; }
  /// The same tactic under another name.
  constexpr manual_tactic named(std::string_view n) const {
    manual_tactic t = *this;
    t.name_ = n;
    return t;
  }
  constexpr void apply(tactic_context& c) const {
    schedule_detail::placing{axis_, {entries_, N}, uneven_}.apply(c);
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

/// `manual("B", {{"x", 0}, {"params", replicated}})`, optionally with a name for reports, and with
/// what becomes of dimensions that the axis does not divide.
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
