// expect: M005 mesh: {"B":1099511627776, "M":1099511627776} has more than 2^59 - 1 devices, the
// most that are supported
#include "mlp.hpp"

#ifdef FAIL
constexpr pt::mesh wrong{{"B", 1LL << 40}, {"M", 1LL << 40}};
#else
constexpr pt::mesh wrong{{"B", 4}, {"M", 2}};
#endif

constexpr auto step = [] { return pt::partition(traced(), wrong, pt::schedule(BP)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
