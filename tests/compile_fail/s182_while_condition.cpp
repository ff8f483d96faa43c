// expect: S182 while_loop: the condition returns tensor<8x4xi1>; tensor<i1> is needed
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) {
  return pt::while_loop([](auto c) { return c < 9; }, [](auto c) { return c * 2; }, x);
};
#else
constexpr auto model = [](auto x, auto) {
  return pt::while_loop([](auto c) { return pt::sum(c) < 9; }, [](auto c) { return c * 2; }, x);
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
