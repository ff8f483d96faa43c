// expect: S193 attention: mask tensor<5x6xi1> is not of i1 or does not broadcast to [8, 6, 5, 5],
// (batch, heads, queries, keys)
#include "mlp.hpp"

namespace nn = partita::nn;

constexpr auto model = [](auto x, auto y) {
#ifdef FAIL
  return nn::attention(x, x, x, y > 0);
#else
  return nn::attention(x, x, x, pt::slice<1, 0, 5>(y) > 0);
#endif
};

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 5, 6, 3>("x"), pt::input<float, 5, 6>("y"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
