// expect: S191 rotary: dimension 3 of tensor<8x5x2x7xf32> has odd size 7; its elements are turned
// in pairs
#include "mlp.hpp"

namespace nn = partita::nn;

constexpr auto model = [](auto x, auto y) {
#ifdef FAIL
  return nn::rotary<nn::rotary_pairs::halves>(x, 0) + y;
#else
  return nn::rotary<nn::rotary_pairs::halves>(pt::slice<3, 0, 6>(x), 0) + pt::slice<3, 0, 6>(y);
#endif
};

constexpr auto step = [] {
  const auto f =
      pt::trace(model, pt::input<float, 8, 5, 2, 7>("x"), pt::input<float, 8, 5, 2, 7>("y"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
