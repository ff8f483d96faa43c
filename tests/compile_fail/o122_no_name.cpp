// expect: O122 pipeline: tanh (tensor<4x4xf32>) runs for each microbatch on mesh "m0", and fits
// expect: into none of its units; give it a name
#include "stages.hpp"

constexpr auto step = [] {
  const auto model = [](auto x, auto w) {
#ifdef FAIL
    return std::tuple{pt::output("y", layers_in_stages(x, w)), pt::output("z", tanh(x))};
#else
    const auto first = [](auto v) { return tanh(v); };
    return std::tuple{pt::output("y", layers_in_stages(x, w)),
                      pt::output("z", pt::named("first", first)(x))};
#endif
  };
  return pt::pipeline(traced_layers(model), two_meshes, pt::gpipe, split());
};
static_assert(pt::check<step>.deadlock_free);
