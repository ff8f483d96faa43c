// expect: S003 microbatch(3): dimension 0 of "x" has size 16, which 3 does not divide; choose
// another number of steps
#include "mlp.hpp"

#ifdef FAIL
constexpr auto MB = pt::microbatch(3, {{"x", 0}});
#else
constexpr auto MB = pt::microbatch(4, {{"x", 0}});
#endif

constexpr auto step = [] {
  const auto f = pt::trace(mlp, pt::input<float, 16, 8>("x"), pt::input<float, 8, 16>("w1"),
                           pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh, pt::schedule(MB, BP));
};
static_assert(pt::check<step>.collectives.total() == 0);
