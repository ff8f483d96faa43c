// expect: P026 trace: the model returns nothing; return a tensor, a tree of tensors,
// lines: 5 20
#include <partita/partita.hpp>

namespace pt = partita;

constexpr auto model = [](auto x) {
#ifdef FAIL
  (void)(x + x);
#else
  return x + x;
#endif
};
constexpr auto step = [] {
  return pt::partition(pt::trace(model, pt::input<float, 16, 8>("x")), {{"B", 4}},
                       pt::schedule(pt::manual("B", {{"x", 0}})));
};
static_assert(pt::check<step>.collectives.total() == 0);
