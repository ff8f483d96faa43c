// expect: O123 pipeline: forward of stage 0 ("last") needs what forward of stage 1 ("middle") makes,
// expect: and that what forward of stage 0 ("first") makes, so that the stage would run twice for
// expect: each microbatch; give what comes later a stage of its own
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
