/// `check<thunk>`: the figures of a partitioned program as compile-time constants.
#pragma once

#include <concepts>
#include <string_view>

#include <partita/cost/simulate.hpp>
#include <partita/schedule/after_tactic.hpp>
#include <partita/schedule/byte_literals.hpp>
#include <partita/schedule/partition.hpp>
#include <partita/schedule/summary.hpp>
#include <partita/support/static_error.hpp>

namespace partita {

namespace schedule_detail {

struct placeholder_layout : placeholder_figure {
  constexpr placeholder_figure dim_of(int) const { return {}; }
};
struct placeholder_summary : placeholder_figures {
  static constexpr bool proved = true;
  struct value {
    placeholder_figure name, element, global_shape, local_shape;
    placeholder_layout sharding;
  };
  struct tactic_value {
    placeholder_figure name;
    placeholder_collectives collectives, collectives_as_written;
    placeholder_figure actions, conflicts;
  };
  constexpr placeholder_figure error() const { return {}; }
  template <class Key>
  constexpr value input(const Key&) const {
    return {};
  }
  template <class Key>
  constexpr value output(const Key&) const {
    return {};
  }
  template <class Key>
  constexpr placeholder_figure messages(const Key&) const {
    return {};
  }
  template <class Key>
  constexpr tactic_value tactic(const Key&) const {
    return {};
  }
};

inline constexpr placeholder_summary placeholder_constant;

/// The result of `prove` for a program, or a text stating that its header is missing. (`prove` is
/// found by argument-dependent lookup, so files that prove nothing need not include it.)
struct kept_proof {
  char chars[2048] = {};  ///< why the program is not proved; empty if it is

  template <class Partitioned>
  constexpr explicit kept_proof(Partitioned p) {
    if constexpr (requires { prove(p); })
      keep(prove(p).error.message);
    else
      keep("check<thunk>.proved needs #include <partita/prove/prove.hpp>");
  }
  constexpr void keep(std::string_view s) {
    for (std::size_t i = 0; i < s.size() && i + 1 < sizeof chars; ++i) chars[i] = s[i];
  }
};
template <auto Thunk>
inline constexpr kept_proof proof{Thunk()};
template <auto Thunk>
struct proof_message {
  constexpr std::string_view operator()() const { return proof<Thunk>.chars; }
};

template <auto Thunk, summary_limits Limits>
constexpr bool is_proved();

/// The figures that the compiler keeps of a program, as a constant whose names are views of it.
template <auto Thunk, summary_limits Limits>
struct checked_summary : basic_summary<kept_arrays<Limits>, std::string_view> {
  using basic_summary<kept_arrays<Limits>, std::string_view>::basic_summary;
  /// True if the device-local program provably computes its source. `prove` is evaluated only if
  /// this member is used. If the proof fails, one diagnostic states where and why.
  static constexpr bool proved = is_proved<Thunk, Limits>();
};
template <auto Thunk, summary_limits Limits>
struct evaluation {
  summary_limits needed;
  checked_summary<Thunk, Limits> kept;
  bool proved;  ///< true if the program was proved in the same evaluation

  constexpr explicit evaluation(const partitioned& p)
      : evaluation(summary_with_words(p, Limits.collectives), p.proved) {}
  constexpr evaluation(const summary& s, bool is_proved)
      : needed(s.lists().size()), kept(s, kept_arrays<Limits>(s.lists())), proved(is_proved) {}
  constexpr bool complete() const {
    return needed.values <= Limits.values && needed.tactics <= Limits.tactics &&
           needed.chars <= Limits.chars;
  }
  /// True if every collective has its texts.
  constexpr bool explained() const { return needed.collectives == kept.lists().rest.collectives; }
};

/// The single evaluation of a thunk; all uses with the same limits share it.
template <auto Thunk, summary_limits Limits>
inline constexpr evaluation<Thunk, Limits> evaluated{Thunk()};

template <auto Thunk, summary_limits Limits>
constexpr bool is_proved() {
  if constexpr (!evaluated<Thunk, Limits>.proved) report_static_error<proof_message<Thunk>>();
  return true;
}

constexpr summary_limits with_room(const summary_limits& first, const summary_limits& needed) {
  const auto larger = [](int a, int b) { return a > b ? a : b; };
  return {larger(first.values, needed.values), larger(first.tactics, needed.tactics),
          larger(first.chars, needed.chars), larger(first.collectives, needed.collectives)};
}

/// Returns that evaluation, or a second one with enough room if the program exceeds the first
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

/// The figures that `check` keeps of a result other than pt::partitioned. Specialize it next to
/// that type, with a function `kept<Thunk>()`.
template <class Result>
struct check_of;

template <auto Thunk, summary_limits First>
constexpr const auto& checked_partitioned() {
  static_assert(
      requires {
        { Thunk() } -> std::same_as<partitioned>;
      },
      "check<thunk>: the thunk takes no arguments and returns a pt::partitioned, as "
      "pt::partition does, or a pt::pipelined (include <partita/mpmd/check_pipeline.hpp>)");
  constexpr auto& made = complete_evaluation<Thunk, First>().kept;
  if constexpr (made.error().empty()) {
    return made;
  } else {
    // An error in the model itself has already been reported where the model is written.
    if constexpr (made.error().substr(0, 4) != "P000")
      report_static_error<check_message<Thunk, First>>();
    return placeholder_constant;
  }
}
template <auto Thunk, summary_limits First>
constexpr const auto& checked() {
  if constexpr (requires { check_of<decltype(Thunk())>::template kept<Thunk>(); })
    return check_of<decltype(Thunk())>::template kept<Thunk>();
  else
    return checked_partitioned<Thunk, First>();
}

}  // namespace schedule_detail

/// The cost of a step on a device, as `check<thunk, device>` shows it.
struct device_check {
  bool fits = true;         ///< true if the step fits into the device's memory
  double step_time = 0;     ///< seconds
  double compute_time = 0;  ///< seconds of it in kernels
  double communication_time = 0;
  /// Utilization of FLOPs, 0 to 1: by the model, and by all ops of the program.
  double mfu = 0, hfu = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t messages[max_axes] = {};  ///< sent by a device, by axis of the program's mesh
};

namespace schedule_detail {

struct kept_simulation {
  device_check figures;
  char error[512] = {};

  constexpr kept_simulation(const partitioned& p, const device& on) {
    const simulation s = p.error ? simulation() : simulate(p.device, on);
    const std::string_view message = p.error ? p.error.message.view() : s.error.message.view();
    for (std::size_t i = 0; i < message.size() && i + 1 < sizeof error; ++i) error[i] = message[i];
    figures = {static_cast<double>(p.cost.peak_bytes) <= on.memory,
               s.time,
               s.compute,
               s.communication,
               s.mfu(),
               s.hfu(),
               p.cost.peak_bytes,
               {}};
    for (int a = 0; a < max_axes; ++a) figures.messages[a] = s.messages[a];
  }
};
template <auto Thunk, device On>
inline constexpr kept_simulation simulated{Thunk(), On};
template <auto Thunk, device On>
struct simulation_message {
  constexpr std::string_view operator()() const { return simulated<Thunk, On>.error; }
};

template <auto Thunk, auto Option>
constexpr const auto& checked_with() {
  if constexpr (std::same_as<std::remove_cv_t<decltype(Option)>, device>) {
    if constexpr (simulated<Thunk, Option>.error[0] != '\0')
      report_static_error<simulation_message<Thunk, Option>>();
    return simulated<Thunk, Option>.figures;
  } else {
    return checked<Thunk, Option>();
  }
}

}  // namespace schedule_detail

/// The figures of the partitioned program that `Thunk`, a captureless callable, returns, computed
/// by the compiler. An error in the program is one diagnostic with its text. `check<thunk, device>`
/// is its cost on a device: `fits`, `step_time` and the other members of device_check.
///
/// Cost      one constant evaluation per thunk and translation unit, linear in ops, which `explain`
///           and `diff` share; a second one if the program exceeds the summary_limits in `Option`;
///           one more for each device, and one for each after_tactic
template <auto Thunk, auto Option = summary_limits{}>
inline constexpr const auto& check = schedule_detail::checked_with<Thunk, Option>();

}  // namespace partita
