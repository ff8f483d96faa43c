// expect: O110 mpmd: dot_general (%x6: tensor<4x4xf32>) of part "middle", which no line assigns, is
// expect: needed on mesh "m1" for "last", and is computed from results of "first" on mesh "m0";
// expect: nothing sends them: assign "middle" to a mesh, or set infer_transfers
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto three = [](auto x, auto w) {
  return pt::named("last", layer)(pt::named("middle", layer)(pt::named("first", layer)(x, w), w), w);
};
constexpr auto step = [] {
#ifdef FAIL
  constexpr pt::stage_list stages{{"first"}, {"last"}};
#else
  constexpr pt::stage_list stages{{"first"}, {"middle", "last"}};
#endif
  return pt::partition(traced_layers(three), two_meshes,
                       pt::schedule(pt::pipeline(
                           {.stages = stages, .batch = {{"x", 0}}, .microbatches = 2})));
};
static_assert(pt::check<step>.stages == 2);
