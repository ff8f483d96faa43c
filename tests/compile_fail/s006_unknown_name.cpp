// expect: S006 manual("M"): no input, tag or output is named "w3" or is below it; known: x, w1,
// w2, result; did you mean "w1"?
#include "mlp.hpp"

#ifdef FAIL
constexpr auto tactic = pt::manual("M", {{"w3", 1}});
#else
constexpr auto tactic = MP;
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, tactic)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
