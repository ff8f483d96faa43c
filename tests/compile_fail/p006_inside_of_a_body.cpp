// expect: P006 trace: an op uses a tensor of a body that is finished
#include "mlp.hpp"

// A tensor of a body that is used after the body is finished.
constexpr auto model = [](auto x, auto) {
  auto seen = pt::sum(x);
  const auto last = pt::for_loop(
      0, 3,
      [&](auto, auto c) {
        const auto y = c * 2;
#ifdef FAIL
        seen = pt::sum(y);
#endif
        return y;
      },
      x);
  return last + seen;
};

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
