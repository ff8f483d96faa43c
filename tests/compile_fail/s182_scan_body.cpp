// expect: S182 scan: the body returns a tuple of 2; the carried value is tensor<4xf32>
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto) {
  return pt::scan(
             [](auto c, auto s) {
               return std::pair{std::tuple{c, s}, s};
             },
             pt::sum<0>(x), x)
      .first;
};
#else
constexpr auto model = [](auto x, auto) {
  return pt::scan([](auto c, auto s) { return std::pair{c + s, s}; }, pt::sum<0>(x), x).first;
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
