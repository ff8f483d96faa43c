// expect: S183 for_loop: from 3 to 2 is a negative trip count
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) {
  return pt::for_loop(
      3, 2, [](auto, auto c) { return c * 2; }, x);
};
#else
constexpr auto model = [](auto x, auto) {
  return pt::for_loop(
      3, 5, [](auto, auto c) { return c * 2; }, x);
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
