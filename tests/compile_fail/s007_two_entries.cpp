// expect: S007 manual("M"): two entries are named "w1"
#include "mlp.hpp"

#ifdef FAIL
constexpr auto tactic = pt::manual("M", {{"w1", 0}, {"w1", 1}});
#else
constexpr auto tactic = pt::manual("M", {{"w1", 1}, {"w2", 0}});
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, tactic)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
