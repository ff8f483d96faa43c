// expect: S190 attention: 4 heads of keys tensor<8x5x4x3xf32> do not divide the 6 heads of queries
// tensor<8x5x6x3xf32>
#include "mlp.hpp"

namespace nn = partita::nn;

constexpr auto model = [](auto x, auto y) {
#ifdef FAIL
  return nn::attention(x, y, y);
#else
  return nn::attention(x, pt::slice<2, 0, 3>(y), pt::slice<2, 0, 3>(y));
#endif
};

constexpr auto step = [] {
  const auto f =
      pt::trace(model, pt::input<float, 8, 5, 6, 3>("x"), pt::input<float, 8, 5, 4, 3>("y"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
