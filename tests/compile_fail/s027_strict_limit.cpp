// expect: S027 strict: the limit is -1024 bytes; give 0 or more, or pt::partition_options::off (-1)
#include "mlp.hpp"

#ifdef FAIL
constexpr pt::partition_options options{.strict = -1024};
#else
constexpr pt::partition_options options{.strict = pt::partition_options::off};
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP), options); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
