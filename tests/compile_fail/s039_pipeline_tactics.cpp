// expect: S039 partition: several tactics are passed without a schedule; write
// lines: 10 24
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto PP =
    pt::pipeline({.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}, .microbatches = 2});
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
#ifdef FAIL
constexpr auto step = [] {
  return pt::partition(traced_layers(layers_in_stages), two_meshes, PP, BP);
};
#else
constexpr auto step = [] {
  return pt::partition(traced_layers(layers_in_stages), two_meshes, pt::schedule(PP, BP));
};
#endif
static_assert(pt::check<step>.stages == 2);
