// expect: M004 mesh: the name of axis 1 has 0 characters; 1 to 31 are allowed
#include "mlp.hpp"

#ifdef FAIL
constexpr pt::mesh wrong{{"B", 4}, {"", 2}};
#else
constexpr pt::mesh wrong{{"B", 4}, {"M", 2}};
#endif

constexpr auto step = [] { return pt::partition(traced(), wrong, pt::schedule(BP)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
