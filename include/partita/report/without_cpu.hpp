/// Error text for running a program without <partita/cpu.hpp>.
#pragma once

#include <string_view>
#include <type_traits>

#include <partita/ir/program.hpp>
#include <partita/support/static_error.hpp>

namespace partita {

namespace report_detail {

/// True for a program or a type that contains one.
template <class P>
inline constexpr bool is_runnable = std::is_convertible_v<const P&, const program&> ||
                                    requires(const P& p) {
  p.source.ops;
}
|| requires(const P& p) { p.local.ops; }
|| requires(const P& p) { p.core.actions; };

template <class P>
struct run_message {
  constexpr std::string_view operator()() const {
    return "R013 run: evaluate, emulate and temporal need #include <partita/cpu.hpp>, and the "
           "CMake target partita::cpu or partita::separate";
  }
};

/// Takes part in any comparison, so that one mistake causes one error message.
struct no_result {
  template <class T>
  constexpr operator T() const;
};

}  // namespace report_detail

// The functions of cpu.hpp are more specialized or more constrained.
#define PARTITA_WITHOUT_CPU(function)                                                           \
  template <class P, class... Args>                                                             \
  constexpr std::enable_if_t<report_detail::is_runnable<P>, report_detail::no_result> function( \
      const P&, const Args&...) {                                                               \
    report_static_error<report_detail::run_message<P>>();                                       \
    return {};                                                                                  \
  }
PARTITA_WITHOUT_CPU(evaluate)
PARTITA_WITHOUT_CPU(emulate)
PARTITA_WITHOUT_CPU(temporal)
#undef PARTITA_WITHOUT_CPU

}  // namespace partita
