// expect: O106 mpmd: "second" is assigned twice, to stage 0 on mesh "m0" and to stage 1 on mesh
// expect: "m1"; name it once
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto step = [] {
#ifdef FAIL
  constexpr pt::stage_list stages{{"first", "second"}, {"second"}};
#else
  constexpr pt::stage_list stages{{"first"}, {"second"}};
#endif
  return pt::partition(traced_layers(layers_in_stages), two_meshes,
                       pt::schedule(pt::pipeline(
                           {.stages = stages, .batch = {{"x", 0}}, .microbatches = 2})));
};
static_assert(pt::check<step>.stages == 2);
