// expect: S120 shift_left: element type f32 is not an integer type
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) { return x << 2; };
#else
constexpr auto model = [](auto x, auto) { return pt::convert<std::int32_t>(x) << 2; };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
