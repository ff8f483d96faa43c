// expect: O003 order: 3 microbatches on 2 meshes; interleaved_1f1b needs a number of
// expect: microbatches that is divisible by the number of meshes; or use circular
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

#ifdef FAIL
constexpr std::int64_t microbatches = 3;
#else
constexpr std::int64_t microbatches = 4;
#endif
constexpr auto four_layers = [](auto x, auto w) {
  for (int i = 0; i < 4; ++i) x = pt::named("layers", i, layer)(x, w);
  return x;
};
constexpr auto step = [] {
  return pt::partition(
      pt::trace(four_layers, pt::input<float, 12, 4>("x"), pt::input<float, 4, 4>("w")),
      two_meshes,
      pt::schedule(pt::pipeline({.stages = {{"layers.0"}, {"layers.1"}, {"layers.2"}, {"layers.3"}},
                                 .batch = {{"x", 0}},
                                 .microbatches = microbatches,
                                 .order = pt::interleaved_1f1b})));
};
static_assert(pt::check<step>.stages == 4);
