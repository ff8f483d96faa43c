// expect: M003 mesh: two axes are named "B"
#include "mlp.hpp"

#ifdef FAIL
constexpr pt::mesh wrong{{"B", 4}, {"B", 2}};
#else
constexpr pt::mesh wrong{{"B", 4}, {"C", 2}};
#endif

constexpr auto step = [] { return pt::partition(traced(), wrong, pt::schedule(BP)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
