// expect: S157 convolution: dimension 3 of lhs tensor<8x9x9x4xf32> has 4 features, dimension 2 of
// rhs tensor<9x3x3x8xf32> has 3
#include "mlp.hpp"

constexpr auto model = [](auto x, auto w) {
#ifdef FAIL
  return pt::conv(x, pt::reshape<9, 3, 3, 8>(w));
#else
  return pt::conv(x, w);
#endif
};

constexpr auto step = [] {
  const auto f =
      pt::trace(model, pt::input<float, 8, 9, 9, 4>("x"), pt::input<float, 3, 6, 4, 9>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
