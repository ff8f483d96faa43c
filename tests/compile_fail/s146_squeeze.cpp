// expect: S146 squeeze: dimension 1 of tensor<8x4xf32> has another size than 1, or is given twice
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) { return pt::squeeze<1>(x); };
#else
constexpr auto model = [](auto x, auto) { return pt::squeeze<1>(pt::expand_dims<1>(x)); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
