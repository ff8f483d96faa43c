// expect: S011 microbatch(4): dimension 0 of "x" is already in a loop of microbatches;
// expect: a dimension can be sliced only once
#include "mlp.hpp"

#ifdef FAIL
constexpr int dim = 0;
#else
constexpr int dim = 1;
#endif

constexpr auto step = [] {
  const auto first = pt::microbatch(4, {{"x", 0}}), second = pt::microbatch(4, {{"x", dim}});
  return pt::partition(traced(), mesh, pt::schedule(first, second));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
