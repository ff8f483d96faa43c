// expect: O147 pipeline: 3 stages are requested from 2 named parts; known: first, second
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto step = [] {
#ifdef FAIL
  constexpr int count = 3;
#else
  constexpr int count = 2;
#endif
  return pt::partition(traced_layers(layers_in_stages), two_meshes,
                       pt::schedule(pt::pipeline(
                           {.stages = pt::automatic_stages(count), .batch = {{"x", 0}}}, "PP")));
};
static_assert(pt::check<step>.stages == 2);
