// expect: S023 tactic: sub-axis "A":(1)3 overlaps "A":(2)3, a part into which axis "A" of size 6 is
// expect: split already
#include "mlp.hpp"

#ifdef FAIL
constexpr auto tactic = pt::manual("A:(1)3", {{"w1", 1}});
#else
constexpr auto tactic = pt::manual("A:(2)3", {{"w2", 1}});
#endif
constexpr auto halves = pt::manual("A:(1)2", {{"x", 0}});

constexpr auto step = [] {
  const auto f = pt::trace([](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); },
                           pt::input<float, 6, 6>("x"), pt::input<float, 6, 6>("w1"),
                           pt::input<float, 6, 6>("w2"));
  return pt::partition(f, {{"A", 6}}, pt::schedule(halves, tactic));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
