// expect: M001 mesh: axis "M" has size 0; an axis has at least one device
#include "mlp.hpp"

#ifdef FAIL
constexpr pt::mesh wrong{{"B", 4}, {"M", 0}};
#else
constexpr pt::mesh wrong{{"B", 4}, {"M", 1}};
#endif

constexpr auto step = [] { return pt::partition(traced(), wrong, pt::schedule(BP)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
