// expect: O130 tactic: sub-axis "B":(1)2 is a part of axis "B", which has different sizes: 4 on mesh
// expect: "m0", 2 on mesh "m1"; name the whole axis
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto PP =
    pt::pipeline({.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}, .microbatches = 2});
#ifdef FAIL
constexpr auto BP = pt::manual("B:(1)2", {{"x", 0}});
#else
constexpr auto BP = pt::manual("B", {{"x", 0}});
#endif
constexpr pt::topology cluster{{"m0", {{"B", 4}}}, {"m1", {{"B", 2}}}};
constexpr auto step = [] {
  return pt::partition(traced_layers(layers_in_stages), cluster, pt::schedule(PP, BP));
};
static_assert(pt::check<step>.stages == 2);
