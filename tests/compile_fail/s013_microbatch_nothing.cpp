// expect: S013 microbatch(2): no op is computed slice by slice for "x"
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x) { return pt::sort<0>(x); };
#else
constexpr auto model = [](auto x) { return pt::sort<1>(x); };
#endif

constexpr auto step = [] {
  return pt::partition(pt::trace(model, pt::input<float, 4, 4>("x")), mesh,
                       pt::schedule(pt::microbatch(2, {{"x", 0}})));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
