// expect: S035 expect: all_reduce 2, all_to_all 1 (expected all_reduce 3, all_to_all 0)
// lines: 5 20
#include <partita/partita.hpp>

namespace pt = partita;

inline constexpr pt::collectives found{.all_reduce = 2, .all_to_all = 1};
#ifdef FAIL
static_assert(pt::expect<found, pt::collectives{.all_reduce = 3}>);
#else
static_assert(pt::expect<found, pt::collectives{.all_reduce = 2, .all_to_all = 1}>);
#endif
