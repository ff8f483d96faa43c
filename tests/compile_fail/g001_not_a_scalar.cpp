// expect: G001 grad: the function returns tensor<8x6xf32>; a floating-point scalar is needed
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) {
  return pt::grad([&](auto v) { return matmul(x, v); }, w) + 0 * pt::sum(x);
};
#else
constexpr auto model = [](auto x, auto w) {
  return pt::grad([&](auto v) { return pt::sum(matmul(x, v)); }, w);
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
