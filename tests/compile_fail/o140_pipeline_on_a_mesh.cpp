// expect: O140 pipeline "PP": its stages need several meshes, and partition has one; give it a
// topology
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto step = [] {
  constexpr auto in_stages =
      pt::pipeline({.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}}, "PP");
#ifdef FAIL
  return pt::partition(traced_layers(layers_in_stages), pt::mesh{{"B", 2}},
                       pt::schedule(in_stages));
#else
  return pt::partition(traced_layers(layers_in_stages), two_meshes, pt::schedule(in_stages));
#endif
};
static_assert(pt::check<step>.collectives.all_reduce == 0);
