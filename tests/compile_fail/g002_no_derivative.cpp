// expect: G002 grad: op staircase (tensor<8x4xf32>) has no derivative rule
#include "mlp.hpp"

// A user's op without a derivative rule.
struct staircase_op : pt::op::elementwise_op {
  static constexpr std::string_view name = "staircase";
  static constexpr void infer(pt::infer_context& c) { c.result = c.operands[0]; }
};
template <pt::Tensor X>
constexpr X staircase(const X& x) {
  return X(x.context(), x.context()->emit(pt::def<staircase_op>, {x.id()}));
}

#ifdef FAIL
constexpr auto loss = [](auto x) { return pt::sum(staircase(x)); };
#else
constexpr auto loss = [](auto x) { return pt::sum(x) + pt::sum(pt::stop_gradient(staircase(x))); };
#endif
constexpr auto model = [](auto x) { return pt::grad(loss, x); };

constexpr auto step = [] {
  return pt::partition(pt::trace(model, pt::input<float, 8, 4>("x")), mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
