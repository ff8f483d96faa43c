// expect: S112 scatter: updates tensor<8x4xf32> are not windows of tensor<9xf32> at integer indices
// tensor<4x6xi32>
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) {
  return pt::scatter_add(pt::convert<std::int32_t>(w), x, pt::extent<9>{});
};
#else
constexpr auto model = [](auto x, auto w) {
  return pt::scatter_add(pt::convert<std::int32_t>(w), w, pt::extent<9>{}) + pt::sum(x);
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
