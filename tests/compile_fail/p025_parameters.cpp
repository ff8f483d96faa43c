// expect: P025 trace: the model cannot be called with the 2 inputs that are given: it has another
// lines: 5 20
#include <partita/partita.hpp>

namespace pt = partita;

#ifdef FAIL
constexpr auto model = [](auto x, auto w, auto b) { return matmul(x, w) + b; };
#else
constexpr auto model = [](auto x, auto w) { return matmul(x, w); };
#endif
constexpr auto step = [] {
  return pt::partition(pt::trace(model, pt::input<float, 16, 8>("x"), pt::input<float, 8, 4>("w")),
                       {{"B", 4}}, pt::schedule(pt::manual("B", {{"x", 0}})));
};
static_assert(pt::check<step>.collectives.total() == 0);
