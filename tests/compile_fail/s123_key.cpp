// expect: S123 uniform: the key has type tensor<8xi64>; tensor<i64> is needed
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) {
  return pt::uniform<float>(pt::convert<std::int64_t>(sum<1>(x)), x);
};
#else
constexpr auto model = [](auto x, auto) {
  return pt::uniform<float>(pt::convert<std::int64_t>(sum(x)), x);
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
