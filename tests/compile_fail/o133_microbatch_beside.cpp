// expect: O133 partition: "microbatch" makes a loop over microbatches, and the pipeline another one;
// expect: give the pipeline the product of both numbers of microbatches
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto step = [] {
#ifdef FAIL
  constexpr auto tactics =
      pt::schedule(pt::pipeline({.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}}),
                   pt::microbatch(2, {{"x", 0}}));
#else
  constexpr auto tactics = pt::schedule(pt::pipeline(
      {.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}, .microbatches = 2}));
#endif
  return pt::partition(traced_layers(layers_in_stages), two_meshes, tactics);
};
static_assert(pt::check<step>.microbatches == 2);
