// expect: S021 tactic: "B:4" is not a sub-axis of axis "B", which has size 4; "B:(pre)size" is
// expect: needed, both at least 1, pre x size a divisor of 4
#include "mlp.hpp"

#ifdef FAIL
constexpr auto tactic = pt::manual("B:4", {{"w1", 0}});
#else
constexpr auto tactic = pt::manual("B:(1)4", {{"w1", 0}});
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(tactic)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
