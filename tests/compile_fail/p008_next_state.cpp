// expect: P008 trace: output "x" has type tensor<8x6xf32>, the input of that name has type
// tensor<8x4xf32>
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) { return pt::output("x", matmul(x, w)); };
#else
constexpr auto model = [](auto x, auto w) { return pt::output("y", matmul(x, w)); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
