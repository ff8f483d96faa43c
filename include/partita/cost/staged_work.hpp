/// What a cost is told of a core program that is one microbatch of a pipeline.
#pragma once

#include <partita/core/core_program.hpp>
#include <partita/cost/device.hpp>
#include <partita/support/error.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Seconds that a device sends to one of another mesh: over its link beyond the node, or, where it
/// has none, the near one.
constexpr double message_seconds(const device& d, double bytes) {
  const link& over = d.far.bandwidth > 0 ? d.far : d.near;
  return bytes / (over.bandwidth * d.link_part);
}
constexpr double message_latency(const device& d) {
  return d.far.bandwidth > 0 ? d.far.latency : d.near.latency;
}

/// Where ops run, and how often; what meshes send and keep.
struct staged_work {
  /// From mesh to mesh, for each microbatch (`inside`) or once.
  struct message {
    value_id value = -1;
    int from = 0, to = 0;
    bool inside = false;
    bool is_input = false;  ///< it is there before the step begins
    double held = 1;        ///< of so many microbatches the receiver holds it at a time
  };
  int meshes = 1;
  double microbatches = 1;
  double in_flight = 1;  ///< so many are under way at a time, at most
  vec<int> mesh;         ///< by op: the first one that it runs on
  vec<char> inside;      ///< by op: does it run for each microbatch?
  vec<int> unit;  ///< by op: in which one it runs, or -1; a call keeps what it takes to its end
  int units = 0;
  vec<double> held;  ///< by value: of so many microbatches the mesh holds it that makes it
  vec<message> sent;
  vec<value_id> combined;  ///< of all microbatches: they lie there while those run
};

/// What a step takes on the slowest mesh, and of its memory on the fullest.
struct staged_figures {
  double seconds = 0;
  double peak_bytes = 0;  ///< of a device
  failure error;
};

/// The pipeline that a core program is a microbatch of.
struct staged_program {
  virtual constexpr ~staged_program() = default;
  /// Of the program before tactics run: ops that they add are behind those.
  virtual constexpr staged_work work() const = 0;
  /// Simulated, with all calls of the program's units in their order. `on`: for meshes without a
  /// device of their own.
  virtual constexpr staged_figures figures(const core_program& c, const machine& on,
                                           bool overlap) const = 0;
};

}  // namespace partita
