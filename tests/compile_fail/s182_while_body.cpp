// expect: S182 while_loop: the body returns tensor<8x6xf32>; the carried value is tensor<8x4xf32>
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) {
  return pt::while_loop([](auto c) { return pt::sum(c) < 9; },
                        [&](auto c) { return pt::matmul(c, w); }, x);
};
#else
constexpr auto model = [](auto x, auto w) {
  return pt::while_loop([](auto c) { return pt::sum(c) < 9; },
                        [&](auto c) { return c * pt::sum(w); }, x);
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
