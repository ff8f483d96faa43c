// expect: O107 mpmd: part "inner" is assigned to mesh "m1" and is inside part "outer", which is
// expect: assigned to mesh "m0"; assign both to one mesh, or only one of them
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto nested = [](auto x, auto w) {
  const auto h = pt::named("outer", [](auto v, auto u) {
    return pt::named("inner", layer)(v, u);
  })(x, w);
  return pt::named("last", layer)(h, w);
};
constexpr auto step = [] {
#ifdef FAIL
  constexpr pt::stage_list stages{{"outer"}, {"inner", "last"}};
#else
  constexpr pt::stage_list stages{{"outer"}, {"last"}};
#endif
  return pt::partition(traced_layers(nested), two_meshes,
                       pt::schedule(pt::pipeline(
                           {.stages = stages, .batch = {{"x", 0}}, .microbatches = 2})));
};
static_assert(pt::check<step>.stages == 2);
