// expect: S193 attention: mask tensor<5x5xf32> is not (..., queries, keys) of i1 with at most 4
// dimensions
#include "mlp.hpp"

namespace nn = partita::nn;

constexpr auto model = [](auto x, auto y) {
#ifdef FAIL
  return nn::attention(x, x, x, y);
#else
  return nn::attention(x, x, x, y > 0);
#endif
};

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 5, 6, 3>("x"), pt::input<float, 5, 5>("y"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
