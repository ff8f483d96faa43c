// expect: S185 case: branch 1 returns tensor<8x6xf32>; branch 0 returns tensor<8x4xf32>
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) {
  return pt::cond(
      pt::sum(x) > 0, [&](auto v) { return pt::matmul(v, w); }, [](auto v) { return v; }, x);
};
#else
constexpr auto model = [](auto x, auto w) {
  return pt::cond(
      pt::sum(x) > 0, [&](auto v) { return v + pt::sum(w); }, [](auto v) { return v; }, x);
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
