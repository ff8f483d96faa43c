/// The figures of a pipeline, and of each of its meshes.
#pragma once

#include <cstdint>

#include <partita/cost/cost.hpp>
#include <partita/mpmd/pipeline_memory.hpp>
#include <partita/mpmd/pipelined.hpp>

namespace partita {

/// The figures of one mesh, for one step.
struct mesh_figures {
  partita::collectives collectives;  ///< those that its devices run
  mesh_memory memory;                ///< of one device, if all calls take the same time
  vec<int> stages;
  int in_flight = 0;  ///< maximum number of microbatches of a stage; see most_in_flight
};

/// The figures of a step.
struct pipeline_figures {
  int messages = 0;
  std::int64_t message_bytes = 0;                   ///< of global values, independent of sharding
  std::int64_t argument_bytes = 0, peak_bytes = 0;  ///< of the device that needs most
  /// The number of collectives that all calls start; combined ones count as one.
  std::int64_t launched = 0;
  vec<mesh_figures> meshes;
  unknown_loops unknown;  ///< loops in its functions that count as one iteration

  /// Cost: that of memory_of.
  constexpr explicit pipeline_figures(const pipelined& p) {
    meshes.resize(static_cast<std::size_t>(p.topology.count()), mesh_figures());
    for (const message& m : p.lists.messages) {
      const value_id v = p.transfers[m.transfer].value;
      message_bytes = saturating_add(message_bytes, p.source.type(v).bytes());
      ++messages;
    }
    for (const auto& u : p.units)
      for (const auto& n : u.notes) {
        const std::int64_t times = saturating_multiply(n.times, u.inside ? p.microbatches : 1);
        meshes[u.piece.mesh].collectives.count(n.kind, times);
        if (!n.joined) launched = saturating_add(launched, times);
      }
    for (const auto& u : p.units) unknown.add(estimate(u.device).unknown);
    add_memory(p);
    add_stages(p);
  }

 private:
  constexpr void add_memory(const pipelined& p) {
    const vec<mesh_memory> memory = memory_of(p);
    for (std::size_t m = 0; m < meshes.size(); ++m) {
      meshes[m].memory = memory[m];
      if (memory[m].arguments > argument_bytes) argument_bytes = memory[m].arguments;
      if (memory[m].peak > peak_bytes) peak_bytes = memory[m].peak;
    }
  }
  constexpr void add_stages(const pipelined& p) {
    const vec<int> most = most_in_flight(p.calls, p.order, p.stages);
    vec<int> mesh_of(static_cast<std::size_t>(p.stages), -1);
    for (const auto& u : p.units)
      if (u.inside && u.piece.stage >= 0) mesh_of[u.piece.stage] = u.piece.mesh;
    for (int s = 0; s < p.stages; ++s) {
      if (mesh_of[s] < 0) continue;
      mesh_figures& m = meshes[mesh_of[s]];
      m.stages.push_back(s);
      if (most[s] > m.in_flight) m.in_flight = most[s];
    }
  }
};

}  // namespace partita
