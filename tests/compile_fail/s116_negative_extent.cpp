// expect: S116 reshape: the result has shape [?, -4]; extents are 0 or above
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) { return pt::reshape(x, -1, -4); };
#else
constexpr auto model = [](auto x, auto) { return pt::reshape(x, 2, 16); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
