// expect: S003 microbatch(3): dimension 0 of "x" has size 8, which 3 does not divide; choose
// another number of steps
#include "stages.hpp"

constexpr auto step = [] {
  auto options = split();
#ifdef FAIL
  options.microbatches = 3;
#else
  options.microbatches = 4;
#endif
  return pt::pipeline(traced_layers(layers_in_stages), two_meshes, pt::gpipe, options);
};
static_assert(pt::check<step>.microbatches == 4);
