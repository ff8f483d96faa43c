// expect: S194 pool: tensor<8x5x6x3xf32>, (n, spatial..., c), has 2 spatial dimensions; the window
// has 3, its other options have 0
#include "mlp.hpp"

namespace nn = partita::nn;

constexpr auto model = [](auto x, auto y) {
#ifdef FAIL
  return nn::max_pool<nn::pool_options{.size = {1, 2, 2}}>(x) * y;
#else
  return nn::max_pool<nn::pool_options{.size = {2, 2}}>(x) * y;
#endif
};

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 5, 6, 3>("x"), pt::input<float, 3>("y"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
