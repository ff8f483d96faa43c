// expect: S010 microbatch(0): at least one step is needed
#include "mlp.hpp"

#ifdef FAIL
constexpr int steps = 0;
#else
constexpr int steps = 1;
#endif

constexpr auto step = [] {
  return pt::partition(traced(), mesh, pt::schedule(BP, pt::microbatch(steps, {{"x", 0}})));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
