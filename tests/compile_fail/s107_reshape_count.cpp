// expect: S107 reshape: tensor<8x4xf32> has 32 elements; shape [5, 7] has 35
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) { return pt::reshape<5, 7>(x); };
#else
constexpr auto model = [](auto x, auto) { return pt::reshape<4, 8>(x); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
