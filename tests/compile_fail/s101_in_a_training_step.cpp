// expect: S101 matmul: contracted extents differ: dimension 1 of lhs tensor<4x6xf32> has size 6,
// dimension 0 of rhs tensor<8x4xf32> has size 8
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) {
  auto [loss, g] = pt::value_and_grad([&](auto v) { return pt::sum(matmul(v, x)); }, w);
  return std::tuple{pt::output("w", w - g * 0.1), pt::output("loss", loss)};
};
#else
constexpr auto model = [](auto x, auto w) {
  auto [loss, g] = pt::value_and_grad([&](auto v) { return pt::sum(matmul(x, v)); }, w);
  return std::tuple{pt::output("w", w - g * 0.1), pt::output("loss", loss)};
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
