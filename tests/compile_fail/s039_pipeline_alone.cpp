// expect: S039 partition: the schedule is a single tactic; write pt::schedule(tactic)
// lines: 10 24
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto PP =
    pt::pipeline({.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}, .microbatches = 2});
#ifdef FAIL
constexpr auto step = [] { return pt::partition(traced_layers(layers_in_stages), two_meshes, PP); };
#else
constexpr auto step = [] {
  return pt::partition(traced_layers(layers_in_stages), two_meshes, pt::schedule(PP));
};
#endif
static_assert(pt::check<step>.stages == 2);
