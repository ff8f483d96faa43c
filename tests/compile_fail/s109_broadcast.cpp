// expect: S109 broadcast_in_dim: dimension 0 of tensor<8x4xf32> does not fit in dimension 1 of the
// result shape [2, 3, 4]
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) {
  return pt::broadcast_in_dim<1, 2>(x, pt::extent<2>{}, pt::extent<3>{}, pt::extent<4>{});
};
#else
constexpr auto model = [](auto x, auto) {
  return pt::broadcast_in_dim<1, 2>(x, pt::extent<2>{}, pt::extent<8>{}, pt::extent<4>{});
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
