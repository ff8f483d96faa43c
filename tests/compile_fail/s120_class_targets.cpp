// expect: S120 cross_entropy: targets tensor<8x5xf32> are not integers
#include "mlp.hpp"

namespace nn = partita::nn;

constexpr auto model = [](auto x, auto y) {
#ifdef FAIL
  return nn::cross_entropy(x, y);
#else
  return nn::cross_entropy(x, pt::convert<int>(y));
#endif
};

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 5, 6>("x"), pt::input<float, 8, 5>("y"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
