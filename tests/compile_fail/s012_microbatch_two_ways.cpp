// expect: S012 microbatch(4): dot_general of tensor<256x16xf32>: dimension 0 of operand 0 ("x") is
// expect: sliced, dimension 1 of operand 1 ("w1") is sliced; they cannot be one loop
#include "mlp.hpp"

#ifdef FAIL
constexpr auto steps = pt::microbatch(4, {{"x", 0}, {"w1", 1}});
#else
constexpr auto steps = pt::microbatch(4, {{"x", 0}});
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, steps)); };
static_assert(pt::check<step>.collectives.all_to_all == 0);
