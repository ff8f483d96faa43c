// expect: S006 manual("M"): no input, tag or output is named "transpose" or is below it; known:
// x, transposed, result; did you mean "transposed"?
#include "mlp.hpp"

constexpr auto model = [](auto x) {
  return matmul(x, pt::tag("transposed", pt::transpose<1, 0>(x)));
};

#ifdef FAIL
constexpr auto keep = pt::manual("M", {{"transpose", pt::replicated}});
#else
constexpr auto keep = pt::manual("M", {{"transposed", pt::replicated}});
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 256, 256>("x"));
  return pt::partition(f, mesh, pt::schedule(keep, pt::manual("M", {{"x", 0}})));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
