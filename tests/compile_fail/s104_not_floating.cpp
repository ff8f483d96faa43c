// expect: S104 exp: element type i32 is not a floating-point type
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) { return exp(pt::convert<std::int32_t>(x)); };
#else
constexpr auto model = [](auto x, auto) { return exp(pt::convert<double>(x)); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
