// expect: S192 group_norm: 3 groups do not divide dimension 2 of tensor<8x5x4xf32>, which has size
// 4
#include "mlp.hpp"

namespace nn = partita::nn;

constexpr auto model = [](auto x, auto y) {
#ifdef FAIL
  return nn::group_norm<3>(x, y, y);
#else
  return nn::group_norm<2>(x, y, y);
#endif
};

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 5, 4>("x"), pt::input<float, 4>("y"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
