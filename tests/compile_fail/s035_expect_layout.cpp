// expect: S035 expect: [{"B"}, {}] (expected [{}, {"B"}])
// lines: 5 20
#include "mlp.hpp"

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP)); };
#ifdef FAIL
static_assert(pt::expect<pt::check<step>.input("x").sharding, R"([{}, {"B"}])", mesh>);
#else
static_assert(pt::expect<pt::check<step>.input("x").sharding, R"([{"B"}, {}])", mesh>);
#endif
