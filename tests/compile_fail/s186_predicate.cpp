// expect: S186 cond: the predicate is tensor<8x4xi1>; tensor<i1> is needed
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) {
  return pt::cond(
      x > 0, [](auto v) { return -v; }, [](auto v) { return v; }, x);
};
#else
constexpr auto model = [](auto x, auto) {
  return pt::cond(
      pt::sum(x) > 0, [](auto v) { return -v; }, [](auto v) { return v; }, x);
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
