// expect: S003 tile: dimension 0 of "x" has size 10; axis "B" has size 4, which does not divide it
#include "mlp.hpp"

#ifdef FAIL
constexpr auto x = pt::input<float, 10, 8>("x");
#else
constexpr auto x = pt::input<float, 12, 8>("x");
#endif

constexpr auto step = [] {
  const auto f = pt::trace(mlp, x, pt::input<float, 8, 16>("w1"), pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
