/// `check<thunk>`: what the compiler knows of a partitioned program.
#pragma once

#include <concepts>
#include <string_view>

#include <partita/schedule/partition.hpp>
#include <partita/schedule/summary.hpp>
#include <partita/support/static_error.hpp>

namespace partita {

namespace schedule_detail {

struct harmless_layout : harmless {
  constexpr harmless dim_of(int) const { return {}; }
};
struct harmless_summary : harmless_figures {
  struct value {
    harmless name, element, global_shape, local_shape;
    harmless_layout sharding;
  };
  struct tactic_value {
    harmless name;
    harmless_collectives collectives, collectives_as_written;
    harmless actions, conflicts;
  };
  constexpr harmless error() const { return {}; }
  template <class Key>
  constexpr value input(const Key&) const {
    return {};
  }
  template <class Key>
  constexpr value output(const Key&) const {
    return {};
  }
  template <class Key>
  constexpr tactic_value tactic(const Key&) const {
    return {};
  }
};

inline constexpr harmless_summary harmless_constant;

/// What the compiler keeps of a program: a constant, with names that are views of it.
template <summary_limits Limits>
struct evaluation {
  summary_limits needed;
  basic_summary<kept_arrays<Limits>, std::string_view> kept;

  constexpr explicit evaluation(const summary& s)
      : needed(s.lists().size()), kept(s, kept_arrays<Limits>(s.lists())) {}
  constexpr bool complete() const {
    return needed.values <= Limits.values && needed.tactics <= Limits.tactics &&
           needed.chars <= Limits.chars;
  }
  /// Are there words for all collectives?
  constexpr bool explained() const { return needed.collectives == kept.lists().rest.collectives; }
};

/// The one evaluation of a thunk, for all that asks for it within the same limits.
template <auto Thunk, summary_limits Limits>
inline constexpr evaluation<Limits> evaluated{summary_with_words(Thunk(), Limits.collectives)};

constexpr summary_limits with_room(const summary_limits& first, const summary_limits& needed) {
  const auto larger = [](int a, int b) { return a > b ? a : b; };
  return {larger(first.values, needed.values), larger(first.tactics, needed.tactics),
          larger(first.chars, needed.chars), larger(first.collectives, needed.collectives)};
}

/// That evaluation; a second one, with room, only for a program that needs more than the first
/// limits.
template <auto Thunk, summary_limits First>
constexpr const auto& complete_evaluation() {
  if constexpr (evaluated<Thunk, First>.complete())
    return evaluated<Thunk, First>;
  else
    return evaluated<Thunk, with_room(First, evaluated<Thunk, First>.needed)>;
}

template <auto Thunk, summary_limits First>
struct check_message {
  constexpr std::string_view operator()() const {
    return complete_evaluation<Thunk, First>().kept.error();
  }
};

template <auto Thunk, summary_limits First>
constexpr const auto& checked() {
  static_assert(
      requires {
        { Thunk() } -> std::same_as<partitioned>;
      },
      "check<thunk>: the thunk takes nothing and returns a pt::partitioned, as "
      "pt::partition does");
  constexpr auto& made = complete_evaluation<Thunk, First>().kept;
  if constexpr (made.error().empty()) {
    return made;
  } else {
    // A model that did not compile has been reported where it is written.
    if constexpr (made.error().substr(0, 4) != "P000")
      report_static_error<check_message<Thunk, First>>();
    return harmless_constant;
  }
}

}  // namespace schedule_detail

/// The figures of the partitioned program that `Thunk`, a captureless callable, returns, computed
/// by the compiler. A mistake in it is one diagnostic that shows its text.
///
/// Cost: one constant evaluation per thunk and translation unit, linear in ops, which `explain` and
/// `diff` share; two for a program that needs more room than `First` gives
template <auto Thunk, summary_limits First = summary_limits{}>
inline constexpr const auto& check = schedule_detail::checked<Thunk, First>();

}  // namespace partita
