// expect: P026 trace: the model returns a number (double); pt::full_like(x, number) turns it
// lines: 5 20
#include <partita/partita.hpp>

namespace pt = partita;

constexpr auto model = [](auto x) {
#ifdef FAIL
  return std::tuple{x, 0.5};
#else  // the result of value_and_grad
  return pt::value_and_grad([](auto y) { return sum(y * y); }, x);
#endif
};
constexpr auto step = [] {
  return pt::partition(pt::trace(model, pt::input<float, 16, 8>("x")), {{"B", 4}},
                       pt::schedule(pt::manual("B", {{"x", 0}})));
};
static_assert(pt::check<step>.output("result.1").local_shape == pt::shape{4, 8});
