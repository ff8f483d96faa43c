// expect: M002 mesh: 9 axes; at most 8 are supported
#include "mlp.hpp"

#ifdef FAIL
constexpr pt::mesh wrong{{"B", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1},
                         {"f", 1}, {"g", 1}, {"h", 1}, {"i", 1}};
#else
constexpr pt::mesh wrong{{"B", 1}, {"b", 1}, {"c", 1}, {"d", 1},
                         {"e", 1}, {"f", 1}, {"g", 1}, {"h", 1}};
#endif

constexpr auto step = [] { return pt::partition(traced(), wrong, pt::schedule(BP)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
