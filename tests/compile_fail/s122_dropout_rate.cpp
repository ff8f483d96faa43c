// expect: S122 dropout: rate 1 is not in [0, 1)
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) { return pt::nn::dropout(x, pt::random_key(x, 7), 1); };
#else
constexpr auto model = [](auto x, auto) { return pt::nn::dropout(x, pt::random_key(x, 7), 0.5); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
