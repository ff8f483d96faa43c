// expect: S118 trace: input "x": tensor<4000000000x4000000000xf32> has more than 2^59 - 1 elements,
// the most that a tensor can have
#include "mlp.hpp"

#ifdef FAIL
constexpr std::int64_t extent = 4000000000;
#else
constexpr std::int64_t extent = 400;
#endif

constexpr auto step = [] {
  const auto f = pt::trace([](auto x) { return x + x; }, pt::input<float, extent, extent>("x"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
