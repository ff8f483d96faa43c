// expect: S001 tactic: the mesh has no axis "N"; known: B, M; did you mean
#include "mlp.hpp"

#ifdef FAIL
constexpr auto tactic = pt::manual("N", {{"w1", 1}});
#else
constexpr auto tactic = MP;
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, tactic)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
