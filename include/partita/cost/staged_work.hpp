/// The placement of a core program that is one microbatch of a pipeline, as its cost needs it.
#pragma once

#include <partita/core/core_program.hpp>
#include <partita/cost/device.hpp>
#include <partita/support/error.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Returns the seconds to send `bytes` to a device of another mesh: over the link beyond the node,
/// or over the near one if the device has only that.
constexpr double message_seconds(const device& d, double bytes) {
  const link& over = d.far.bandwidth > 0 ? d.far : d.near;
  return bytes / (over.bandwidth * d.link_part);
}
constexpr double message_latency(const device& d) {
  return d.far.bandwidth > 0 ? d.far.latency : d.near.latency;
}

/// The mesh of each op, how often it runs, and the values that meshes send and keep.
struct staged_work {
  /// A message from mesh to mesh, for each microbatch (`inside`) or once.
  struct message {
    value_id value = -1;
    int from = 0, to = 0;
    bool inside = false;
    bool is_input = false;  ///< available before the step begins
    double held = 1;  ///< the number of microbatches for which the receiver holds it at a time
  };
  int meshes = 1;
  double microbatches = 1;
  double in_flight = 1;  ///< the maximum number of microbatches in flight
  vec<int> mesh;         ///< by op: the first mesh that it runs on
  vec<char> inside;      ///< by op: true if it runs for each microbatch
  /// By op: the unit that it runs in, or -1. A call keeps its operands until it ends.
  vec<int> unit;
  int units = 0;
  /// By value: the number of microbatches for which the mesh that computes it holds it.
  vec<double> held;
  vec<message> sent;
  /// Values that all microbatches contribute to; they are in memory while those run.
  vec<value_id> combined;
};

/// The time of a step on the slowest mesh, and the peak of memory on the fullest.
struct staged_figures {
  double seconds = 0;
  double peak_bytes = 0;  ///< per device
  failure error;
};

/// The pipeline that a core program is a microbatch of.
struct staged_program {
  virtual constexpr ~staged_program() = default;
  /// Returns the work of the program before tactics run. Ops that tactics add come after its ops.
  virtual constexpr staged_work work() const = 0;
  /// Simulates the pipeline with all calls of its units in their order. `on` is for meshes without
  /// a device of their own.
  virtual constexpr staged_figures figures(const core_program& c, const machine& on,
                                           bool overlap) const = 0;
};

}  // namespace partita
