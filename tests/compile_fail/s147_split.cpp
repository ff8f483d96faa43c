// expect: S147 split: dimension 0 of tensor<8x4xf32> is not divisible by 3
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) { return pt::split<3, 0>(x)[0]; };
#else
constexpr auto model = [](auto x, auto) { return pt::split<4, 0>(x)[0]; };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
