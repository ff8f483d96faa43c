// expect: O007 deadlock: mesh "m0" waits to send
// expect: a capacity of 2 is enough
#include "stages.hpp"

// Each mesh has two layers, first all microbatches of the one, then those of the other.
constexpr auto four_layers = [](auto x, auto w) {
  for (int i = 0; i < 4; ++i) x = pt::named("layers", i, layer)(x, w);
  return x;
};
#ifdef FAIL
constexpr int capacity = 1;
#else
constexpr int capacity = 4;
#endif
constexpr auto step = [] {
  auto options = split();
  options.where.names = {
      {"layers.0", "m0", 0}, {"layers.1", "m1", 1}, {"layers.2", "m0", 2}, {"layers.3", "m1", 3}};
  options.microbatches = 4;
  options.channels.capacity = capacity;
  return pt::pipeline(traced_layers(four_layers), two_meshes, pt::circular, options);
};
static_assert(pt::check<step>.deadlock_free);
