// expect: S100 broadcast_in_dim: the result has rank 9; at most 8 is supported
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) {
  return pt::broadcast_in_dim<0, 1>(x, pt::extent<8>{}, pt::extent<4>{}, pt::extent<1>{},
                                    pt::extent<1>{}, pt::extent<1>{}, pt::extent<1>{},
                                    pt::extent<1>{}, pt::extent<1>{}, pt::extent<1>{});
};
#else
constexpr auto model = [](auto x, auto) {
  return pt::broadcast_in_dim<0, 1>(x, pt::extent<8>{}, pt::extent<4>{}, pt::extent<1>{},
                                    pt::extent<1>{}, pt::extent<1>{}, pt::extent<1>{},
                                    pt::extent<1>{}, pt::extent<1>{});
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
