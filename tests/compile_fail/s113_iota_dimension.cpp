// expect: S113 iota: dimension 1 is out of range for tensor<4xi32>
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) { return pt::iota<std::int32_t, 1>(x, pt::extent<4>{}); };
#else
constexpr auto model = [](auto x, auto) { return pt::iota<std::int32_t, 0>(x, pt::extent<4>{}); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
