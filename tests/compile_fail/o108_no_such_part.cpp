// expect: O108 mpmd: no named part has the name "secnod" or is below it; known: first, second;
// did you mean "second"?
#include "stages.hpp"

constexpr auto step = [] {
  auto options = split();
#ifdef FAIL
  options.where.names[1].name = "secnod";
#endif
  return pt::pipeline(traced_layers(layers_in_stages), two_meshes, pt::gpipe, options);
};
static_assert(pt::check<step>.order("m1") == "F0 F1");
