// expect: S148 take_along_axis: tensor<8x4xf32> and indices tensor<8xi32> differ in rank
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) {
  return pt::take_along_axis<1>(x, pt::convert<int>(pt::sum<1>(x)));
};
#else
constexpr auto model = [](auto x, auto) { return pt::take_along_axis<1>(x, pt::convert<int>(x)); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
