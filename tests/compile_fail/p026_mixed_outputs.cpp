// expect: P026 trace: the model returns an output within a tree or next to something that
// lines: 5 20
#include <partita/partita.hpp>

namespace pt = partita;

constexpr auto model = [](auto x) {
#ifdef FAIL
  return std::tuple{pt::output("twice", x + x), x * x};
#else
  return std::pair{pt::output("twice", x + x), pt::output("square", x * x)};
#endif
};
constexpr auto step = [] {
  return pt::partition(pt::trace(model, pt::input<float, 16, 8>("x")), {{"B", 4}},
                       pt::schedule(pt::manual("B", {{"x", 0}})));
};
static_assert(pt::check<step>.output("square").local_shape == pt::shape{4, 8});
