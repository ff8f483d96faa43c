// expect: S004 tile: "x" is already sliced on dimension 0 along axis "B", by tactic 1 ("BP"); it
// expect: cannot be sliced on dimension 1 too; leave out one of the two, or take axis "M"
#include "mlp.hpp"

#ifdef FAIL
constexpr auto tactic = pt::manual("B", {{"x", 1}});
#else
constexpr auto tactic = pt::manual("B", {{"w1", 1}});
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, tactic)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
