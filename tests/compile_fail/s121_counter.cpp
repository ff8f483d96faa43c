// expect: S121 random_bits: the counter has element type i32; i64 is needed
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) {
  return pt::fold_in(pt::random_key(x, 7), pt::convert<std::int32_t>(sum(x)));
};
#else
constexpr auto model = [](auto x, auto) {
  return pt::fold_in(pt::random_key(x, 7), pt::convert<std::int64_t>(sum(x)));
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
