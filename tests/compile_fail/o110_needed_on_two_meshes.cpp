// expect: O110 mpmd: tanh (
// expect: is needed on mesh "m1" for "second", and is computed from results of "first" on mesh "m0";
// expect: nothing sends them: give the op a name, or set infer_transfers
#include "stages.hpp"

constexpr auto step = [] {
  const auto model = [](auto x, auto w) {
    const auto h = pt::named("first", layer)(x, w);
#ifdef FAIL
    const auto y = tanh(h);
#else
    const auto y = pt::named("first", [](auto v) { return tanh(v); })(h);
#endif
    return pt::named("second", layer)(y, w);
  };
  return pt::pipeline(traced_layers(model), two_meshes, pt::gpipe, split());
};
static_assert(pt::check<step>.transfers == 2);  // the operand of the second layer, and the weight
