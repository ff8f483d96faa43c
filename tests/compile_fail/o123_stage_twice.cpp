// expect: O123 pipeline: forward of stage 0 ("last") needs the result of forward of stage 1 ("middle"),
// expect: which needs the result of forward of stage 0 ("first"), so that the stage would run twice for
// expect: each microbatch; give the later part its own stage
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto three = [](auto x, auto w) {
  return pt::named("last", layer)(pt::named("middle", layer)(pt::named("first", layer)(x, w), w), w);
};
constexpr auto step = [] {
#ifdef FAIL
  constexpr pt::stage_list stages{{"first", "last"}, {"middle"}};
#else
  constexpr pt::stage_list stages{{"first"}, {"middle", "last"}};
#endif
  return pt::partition(traced_layers(three), two_meshes,
                       pt::schedule(pt::pipeline(
                           {.stages = stages, .batch = {{"x", 0}}, .microbatches = 2})));
};
static_assert(pt::check<step>.stages == 2);
