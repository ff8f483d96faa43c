// expect: S145 flip: axis 2 is out of range for rank 2
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) { return pt::flip<2>(x); };
#else
constexpr auto model = [](auto x, auto) { return pt::flip<-2>(x); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
