// expect: P004 trace: two outputs are named "y"
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) {
  return std::tuple{pt::output("y", x), pt::output("y", w)};
};
#else
constexpr auto model = [](auto x, auto w) {
  return std::tuple{pt::output("y", x), pt::output("z", w)};
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
