/// `evaluate` and `emulate`: run a program in one line.
#pragma once

#include <type_traits>

#include <partita/run/executor.hpp>

namespace partita {

namespace run_detail {

template <class P>
concept SourceProgram = std::convertible_to<const P&, const program&>;
template <class P>
concept HoldsSource = !SourceProgram<P> && requires(const P& p) {
  { p.source } -> SourceProgram;
};
template <class P>
concept HoldsDeviceProgram = requires(const P& p) {
  { p.device } -> std::convertible_to<const device_program&>;
};

template <class... Args>
results run_named(const executable& run, const Args&... args) {
  std::vector<array> inputs;
  (flatten(inputs, args), ...);
  return run.named_run(inputs);
}
}  // namespace run_detail

/// Runs a source program on global arrays, and returns global arrays.
///
/// The arguments are arrays, xtensor containers and expressions, scalars, `std::vector<array>`,
/// `std::span<const array>` and `results`, flattened in order. `run_options` may come first.
///
/// ```cpp
/// results r = evaluate(p, x, w1, w2);
/// results r = evaluate(p, run_options{.threads = 4}, x, w1, w2);
/// ```
///
/// Cost      plans the program at each call; make an `executable` to run it often
/// Errors    R001 wrong number of arrays, R002 wrong shape, R003 wrong element type, R005 no kernel
template <class... Args>
results evaluate(const program& p, const run_options& options, const Args&... args) {
  return run_detail::run_named(executable(p, options), args...);
}
template <class... Args>
results evaluate(const program& p, const Args&... args) {
  return evaluate(p, run_options{}, args...);
}

/// Runs a device program on an emulated mesh: global arrays in, global arrays out.
///
/// Arguments as for `evaluate`.
///
/// Errors    those of `evaluate`; R006 an output that should be replicated differs
template <class... Args>
results emulate(const device_program& d, const run_options& options, const Args&... args) {
  return run_detail::run_named(executable(d, options), args...);
}
template <class... Args>
results emulate(const device_program& d, const Args&... args) {
  return emulate(d, run_options{}, args...);
}

/// Runs the source program or device program that the argument has as member `source` or `device`.
template <run_detail::HoldsSource P, class... Args>
results evaluate(const P& p, const Args&... args) {
  return evaluate(static_cast<const program&>(p.source), args...);
}
template <run_detail::HoldsDeviceProgram P, class... Args>
results emulate(const P& p, const run_options& options, const Args&... args) {
  if constexpr (requires { p.error.raise(); }) p.error.raise();
  if constexpr (std::is_same_v<P, partitioned>)
    return run_detail::run_named(run_detail::probed_executable(p, options), args...);
  else
    return emulate(static_cast<const device_program&>(p.device), options, args...);
}
template <run_detail::HoldsDeviceProgram P, class... Args>
results emulate(const P& p, const Args&... args) {
  return emulate(p, run_options{}, args...);
}

}  // namespace partita
