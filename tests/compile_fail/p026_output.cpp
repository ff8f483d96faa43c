// expect: P026 trace: the model returns an output that is a state<
// lines: 5 20
#include <partita/partita.hpp>

namespace pt = partita;

template <class X>
struct state {
  X x;
};
constexpr auto model = [](auto x) {
#ifdef FAIL
  return pt::output("y", state<decltype(x)>{x});
#else
  return pt::output("y", std::tuple{x});
#endif
};
constexpr auto step = [] {
  return pt::partition(pt::trace(model, pt::input<float, 16, 8>("x")), {{"B", 4}},
                       pt::schedule(pt::manual("B", {{"x", 0}})));
};
static_assert(pt::check<step>.collectives.total() == 0);
