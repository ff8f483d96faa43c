// expect: S002 tile: dimension 2 of "w1" is out of range; its shape is [8, 16]
#include "mlp.hpp"

#ifdef FAIL
constexpr auto tactic = pt::manual("M", {{"w1", 2}});
#else
constexpr auto tactic = MP;
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, tactic)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
