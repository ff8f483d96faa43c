// expect: S039 partition: the schedule is a single tactic; write pt::schedule(tactic)
// lines: 5 20
#include "mlp.hpp"

#ifdef FAIL
constexpr auto step = [] { return pt::partition(traced(), mesh, BP); };
#else
constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP)); };
#endif
static_assert(pt::check<step>.collectives.total() == 0);
