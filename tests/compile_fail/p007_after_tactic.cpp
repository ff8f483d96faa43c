// expect: P007 after: no tactic 2; there are 2
#include "mlp.hpp"

#ifdef FAIL
constexpr pt::tactic_choice number = 2;
#else
constexpr pt::tactic_choice number = 1;
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP)); };
static_assert(pt::check<pt::after_tactic<step, number>>.tactic_count == 2);
