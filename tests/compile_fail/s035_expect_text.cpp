// expect: S035 expect: "BP" (expected "MP")
// lines: 5 20
#include "mlp.hpp"

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP)); };
#ifdef FAIL
static_assert(pt::expect<[] { return pt::check<step>.tactic(0).name; }, "MP">);
#else
static_assert(pt::expect<[] { return pt::check<step>.tactic(0).name; }, "BP">);
#endif
