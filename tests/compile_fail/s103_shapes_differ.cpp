// expect: S103 add: shapes [8, 4] and [4, 6] differ and do not broadcast
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) { return exp(x + w); };
#else
constexpr auto model = [](auto x, auto) { return exp(x + x); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
