// expect: S022 tactic: sub-axis "B:(1)3": axis "B" has size 4, which 1 x 3 does not divide; after
// expect: (1) a size of 1, 2 or 4 is possible
#include "mlp.hpp"

#ifdef FAIL
constexpr auto tactic = pt::manual("B:(1)3", {{"w1", 0}});
#else
constexpr auto tactic = pt::manual("B:(1)2", {{"w1", 0}});
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(tactic)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
