// expect: S105 dot_general: batch extents differ: dimension 0 of lhs tensor<8x4xf32> has size 8,
// dimension 0 of rhs tensor<4x6xf32> has size 4
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) {
  return pt::dot_general<pt::axes<0>, pt::axes<0>, pt::axes<>, pt::axes<>>(x, w);
};
#else
constexpr auto model = [](auto x, auto w) {
  return pt::dot_general<pt::axes<1>, pt::axes<0>, pt::axes<>, pt::axes<>>(x, w);
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
