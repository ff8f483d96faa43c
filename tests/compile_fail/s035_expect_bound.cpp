// expect: (expected at most 1000)
// lines: 5 20
#include "mlp.hpp"

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP)); };
#ifdef FAIL
static_assert(pt::expect<pt::check<step>.peak_bytes, pt::at_most{1000}>);
#else
static_assert(pt::expect<pt::check<step>.peak_bytes, pt::at_least{1000}>);
#endif
