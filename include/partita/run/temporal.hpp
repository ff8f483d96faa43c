/// Runs the loops of a partitioned program in sequence: the semantics of PartIR:Core.
///
/// Source    PartIR, section 4 (loops have sequential semantics)
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <partita/core/core_program.hpp>
#include <partita/run/evaluate.hpp>
#include <partita/support/separate.hpp>

namespace partita {

namespace run_detail {

/// Runs a core program op by op, each op in its own nest of loops.
struct run_in_sequence {
  const core_program& c;
  const run_options& options;
  /// Runs on global arrays, and returns global arrays.
  std::vector<array> operator()(std::span<const array> inputs) const;
  std::shared_ptr<const std::vector<std::string>> output_names() const;
};

template <class P>
concept HoldsCoreProgram = requires(const P& p) {
  { p.core } -> std::convertible_to<const core_program&>;
};

}  // namespace run_detail

/// Runs the loops of a core program in sequence on one device: global arrays in, global arrays out.
/// Each op runs slice by slice as its nest says, and the results of slices are stacked or combined.
/// There are neither collectives nor devices. A partitioning is correct if the result equals
/// `evaluate` of the source.
///
/// Arguments as for `evaluate`.
/// Cost      plans an op for each slice: for tests, not for speed
/// Errors    R001 to R003 wrong arrays, R005 no kernel
template <class... Args>
results temporal(const core_program& c, const run_options& options, const Args&... args) {
  return run_detail::run_arguments(run_detail::run_in_sequence{c, options}, args...);
}
template <class... Args>
results temporal(const core_program& c, const Args&... args) {
  return temporal(c, run_options{}, args...);
}
/// Runs the core program that the argument has as member `core`, such as a result of `partition`.
template <run_detail::HoldsCoreProgram P, class... Args>
results temporal(const P& p, const Args&... args) {
  if constexpr (requires { p.error.raise(); }) p.error.raise();
  return temporal(static_cast<const core_program&>(p.core), args...);
}

}  // namespace partita

#if !defined(PARTITA_SEPARATE)
#include <partita/run/temporal_body.hpp>
#endif
