// expect: O105 mpmd: "second" is assigned to mesh "m2", which the topology does not have; known:
// m0, m1; did you mean "m0"?
#include "stages.hpp"

constexpr auto step = [] {
  auto options = split();
#ifdef FAIL
  options.where.names[1].mesh = "m2";
#endif
  return pt::pipeline(traced_layers(layers_in_stages), two_meshes, pt::gpipe, options);
};
static_assert(pt::check<step>.stages == 2);
