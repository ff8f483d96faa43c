// expect: S015 remat: the program has no derivative that reads a value under "w1"
#include "mlp.hpp"

constexpr auto model = [](auto x, auto w1) {
#ifdef FAIL
  return sum(tanh(matmul(x, w1)));
#else
  return pt::grad([&](auto w) { return sum(tanh(matmul(x, w))); }, w1);
#endif
};
constexpr auto step = [] {
  return pt::partition(pt::trace(model, pt::input<float, 4, 4>("x"), pt::input<float, 4, 4>("w1")),
                       mesh, pt::schedule(pt::remat({"w1"})));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
