// expect: S106 dot_general: the batch and contracted dimensions are repeated or out of range for
// tensor<8x4xf32> and tensor<4x6xf32>
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) {
  return pt::dot_general<pt::axes<>, pt::axes<>, pt::axes<2>, pt::axes<0>>(x, w);
};
#else
constexpr auto model = [](auto x, auto w) {
  return pt::dot_general<pt::axes<>, pt::axes<>, pt::axes<1>, pt::axes<0>>(x, w);
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
