// expect: S005 atomic: "x" is already sliced on dimension 0 along axis "B", by tactic 1 ("BP"); no
// expect: action undoes an earlier one; leave out one of the two
#include "mlp.hpp"

#ifdef FAIL
constexpr auto tactic = pt::manual("B", {{"x", pt::replicated}});
#else
constexpr auto tactic = pt::manual("M", {{"x", pt::replicated}});
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, tactic)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
