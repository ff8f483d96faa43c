// expect: S104 all_reduce: element type f32 is neither i1 nor an integer type
// A program for one device that was put together by hand.
#include "mlp.hpp"

constexpr auto step = [] {
  auto p = pt::partition(traced(), mesh, pt::schedule(BP, MP));
#ifdef FAIL
  auto& local = p.device.local;
  const pt::op_id sum = local.producer(local.outputs[0].value);
  local.attr_list[static_cast<std::size_t>(local.op(sum).attr_begin)] =
      static_cast<std::int64_t>(pt::combiner::logical_or);
#endif
  p.error.record(pt::verify(p.device));
  return p;
};
static_assert(pt::check<step>.collectives.all_reduce == 1);
