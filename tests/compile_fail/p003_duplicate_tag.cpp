// expect: P003 trace: tag "w" has the name of another tag or of an input
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) { return matmul(pt::tag("w", x), pt::tag("h", w)); };
#else
constexpr auto model = [](auto x, auto w) { return matmul(pt::tag("g", x), pt::tag("h", w)); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
