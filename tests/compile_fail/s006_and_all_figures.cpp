// expect: S006 manual("M"): no input, tag or output is named "w3" or is below it
// Whatever is asked of a program with a mistake: it stays one error.
#include "mlp.hpp"

#ifdef FAIL
constexpr auto tactic = pt::manual("M", {{"w3", 1}});
#else
constexpr auto tactic = pt::manual("M", {{"w1", 1}});
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, tactic)); };
static_assert(pt::check<step>.argument_bytes / 1024 < 10);
static_assert(pt::check<step>.input("w1").local_shape[0] == 8);
static_assert(pt::check<step>.input("w1").sharding.dim_of(0) == -1);
static_assert(pt::check<step>.collectives.all_gather + 1 == 1);
static_assert(pt::check<step>.tactic("BP").collectives.total() == 0);
static_assert(pt::check<step>.error() == "");
