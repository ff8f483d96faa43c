// expect: P006 trace: an op uses a tensor that is not of this trace
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) { return x + pt::tensor<float, 4>(); };
#else
constexpr auto model = [](auto x, auto) { return x + pt::full_like(x, 1); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
