// expect: Q004 prove: output "result" is
// expect: [{"B"}, {}], to be reduced by add over "M"; in the source it is
// A program that is proved where it is made: whatever is asked of it, it stays one error.
#include "mlp.hpp"

#include <partita/prove/prove.hpp>

constexpr auto step = [] {
  auto p = pt::partition(traced(), mesh, pt::schedule(BP, MP));
#ifdef FAIL
  auto& result = p.device.local.outputs[0].value;  // without the all_reduce
  result = p.device.local.operand(p.device.local.producer(result), 0);
#endif
  return pt::proved(p);
};
static_assert(pt::check<step>.proved);
static_assert(pt::check<step>.collectives.all_reduce == 1);
