/// A sequence of stages without anything else, on which orders are evaluated.
#pragma once

#include <partita/mpmd/fragment_call.hpp>
#include <partita/mpmd/pipeline_order.hpp>

namespace partita {

/// Options of plain_pipeline.
struct plain_options {
  bool backward = true;  ///< false: forward calls only
  bool split = false;    ///< backward calls in two parts
};

/// The calls of consecutive stages. A forward depends on the forward of the stage before. A
/// backward depends on its own forward and on the backward of the next stage, or on the first part
/// of that if it is split. The second part follows the first.
constexpr call_graph plain_pipeline(const pipeline_shape& s, const pipeline_order& order,
                                    plain_options options = {}) {
  call_graph g;
  if (s.meshes < 1) return g;  // `sequence` reports it
  g.meshes = s.meshes;
  g.with_stage = s.stages > s.meshes;
  const auto add = [&](int stage, int transposed, int microbatch, fragment_part part) {
    g.calls.push_back({stage, order.mesh_of(stage, s), transposed, microbatch, part});
    return g.count() - 1;
  };
  const auto first = options.split ? fragment_part::input : fragment_part::whole;
  for (int i = 0; i < s.microbatches; ++i) {
    vec<int> forward;
    int before = -1;
    for (int stage = 0; stage < s.stages; ++stage) {
      forward.push_back(add(stage, 0, i, fragment_part::whole));
      if (before >= 0) g.edges.push_back({before, forward.back()});
      before = forward.back();
    }
    for (int stage = s.stages - 1; options.backward && stage >= 0; --stage) {
      const int call = add(stage, 1, i, first);
      g.edges.push_back({before, call});
      if (before != forward[stage]) g.edges.push_back({forward[stage], call});
      before = call;
      if (options.split) g.edges.push_back({call, add(stage, 1, i, fragment_part::weight)});
    }
  }
  return g;
}

}  // namespace partita
