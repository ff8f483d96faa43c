// expect: S118 broadcast_in_dim: tensor<4000000000x4000000000xf32> has more than 2^59 - 1 elements,
// the most that a tensor can have
#include "mlp.hpp"

#ifdef FAIL
constexpr std::int64_t extent = 4000000000;
#else
constexpr std::int64_t extent = 400;
#endif

constexpr auto step = [] {
  const auto model = [](auto x, auto y) { return x + y; };
  const auto f =
      pt::trace(model, pt::input<float, extent, 1>("x"), pt::input<float, 1, extent>("w"));
  return pt::partition(f, mesh, pt::schedule(pt::manual("B", {{"x", 0}})));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
