// expect: G003 grad: parameter 0 has type tensor<4x6xi32>; only floating-point values have
// gradients
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) {
  const auto i = pt::convert<std::int32_t>(w);
  return pt::grad([&](auto v) { return pt::sum(x) + pt::sum(pt::convert<float>(v)); }, i);
};
#else
constexpr auto model = [](auto x, auto w) {
  return pt::grad([&](auto v) { return pt::sum(x) + pt::sum(v); }, w);
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
