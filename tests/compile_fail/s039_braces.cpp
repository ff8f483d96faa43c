// expect: S039 partition: several tactics are passed without a schedule; write
// lines: 5 20
#include "mlp.hpp"

#ifdef FAIL
constexpr auto step = [] { return pt::partition(traced(), mesh, {BP, MP}); };
#else
constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP)); };
#endif
static_assert(pt::check<step>.collectives.total() >= 0);
