// expect: S111 gather: a table of rank 1 or more and integer indices are needed, not
// tensor<8x4xf32> and tensor<4x6xf32>
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) { return pt::gather(x, w); };
#else
constexpr auto model = [](auto x, auto w) { return pt::gather(x, pt::convert<std::int32_t>(w)); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
