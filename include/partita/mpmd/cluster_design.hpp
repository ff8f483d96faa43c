/// Candidate systems of several meshes, and ways to run a pipeline on them.
#pragma once

#include <cstdint>

#include <partita/cost/device.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/topology.hpp>
#include <partita/support/text.hpp>

namespace partita {

/// Changes to the options of a pipeline. Unset options stay.
struct pipeline_change {
  std::int64_t microbatches = 0;  ///< 0: unchanged
  bool reorders = false;
  pipeline_order order = {};  ///< used if it reorders

  constexpr bool any() const { return microbatches > 0 || reorders; }
  /// Returns the tactic with the changes applied.
  constexpr pipeline_tactic<> operator()(const pipeline_tactic<>& p) const {
    pipeline_plan plan = p.plan();
    if (microbatches > 0) plan.microbatches = microbatches;
    if (reorders) plan.order = order;
    return {plan, plan.order, p.name()};
  }
};

/// Meshes that a pipeline could run on. `on` is the device of meshes without one.
struct cluster_design {
  text name;
  topology cluster;
  device on = {};
  pipeline_change change = {};  ///< for code that applies it; a sweep uses the schedule unchanged

  constexpr const device& device_of(int mesh) const {
    return cluster[mesh].has_device ? cluster[mesh].device : on;
  }
  constexpr std::int64_t devices() const {
    std::int64_t n = 0;
    for (int m = 0; m < cluster.count(); ++m) n += cluster.mesh_of(m).devices();
    return n;
  }
};

}  // namespace partita
