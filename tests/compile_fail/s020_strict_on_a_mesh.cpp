// expect: S020 strict: "w" tensor<4x4xf32> is replicated along "B" by default on mesh "m0": 2
// expect: copies of 64 bytes, where 32 bytes are allowed, and 1 more value is; shard it, or place it
// expect: pt::replicated
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto PP =
    pt::pipeline({.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}, .microbatches = 2});
constexpr auto rows = pt::manual("B", {{"x", 0}});
#ifdef FAIL
constexpr auto weight = pt::manual("B", {{"w", pt::unknown}});
#else
constexpr auto weight = pt::manual("B", {{"w", pt::replicated}});
#endif

constexpr auto step = [] {
  return pt::partition(traced_layers(layers_in_stages), two_meshes,
                       pt::schedule(PP, rows, weight), {.strict = 32});
};
static_assert(pt::check<step>.deadlock_free);
