// expect: O134 pipeline: a device of mesh "m0" needs 448 bytes while it runs F0, 192 of them arguments;
// expect: its device "A100-80" has 100; more microbatches, an order that keeps fewer of them, or more sharding
#include <partita/cost/device.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include "stages.hpp"

constexpr auto PP =
    pt::pipeline({.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}, .microbatches = 2});
constexpr pt::device with_memory(double bytes) {
  pt::device d = pt::a100_80;
  d.memory = bytes;
  return d;
}
#ifdef FAIL
constexpr auto small = with_memory(100);
#else
constexpr auto small = with_memory(1000);
#endif
constexpr pt::topology cluster{{"m0", {{"B", 2}}, small}, {"m1", {{"B", 2}}}};
constexpr auto step = [] {
  return pt::partition(traced_layers(layers_in_stages), cluster, pt::schedule(PP));
};
static_assert(pt::check<step>.stages == 2);
