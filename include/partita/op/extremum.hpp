/// maximum, minimum, clamp: elementwise (see elementwise.hpp); NaN if an operand is NaN.
///
/// For i1, maximum is "or" and minimum is "and".
///
/// Errors    S102 element types differ, S103 shapes differ
#pragma once

#include <partita/op/logical.hpp>
#include <partita/op/select.hpp>

namespace partita::op {

/// Sends the cotangent to the larger operand (maximum) or the smaller one (minimum), and to the
/// first on a tie.
template <class Op, ops::direction FirstWins>
struct extremum_op : one_type_op<Op, any_type, 2> {
  static constexpr void derive(derive_context& c) {
    const value_id x = c.b.p.operand(c.op, 0), y = c.b.p.operand(c.op, 1);
    const value_id first = ops::compare(c.b, FirstWins, x, y);
    const value_id zero = ops::scalar(c.b, c.b.type(c.cotangent).element, 0);
    if (c.wanted[0]) c.operands[0] = to_operand(c, 0, ops::select(c.b, first, c.cotangent, zero));
    if (c.wanted[1]) c.operands[1] = to_operand(c, 1, ops::select(c.b, first, zero, c.cotangent));
  }
};
struct maximum : extremum_op<maximum, ops::direction::ge> {
  static constexpr std::string_view name = "maximum";
};
struct minimum : extremum_op<minimum, ops::direction::le> {
  static constexpr std::string_view name = "minimum";
};

/// Computes min(max(x, low), high) for operands low, x, high. (StableHLO requires the bounds to
/// have rank 0 or the shape of x; here x may have rank 0 too.)
struct clamp : one_type_op<clamp, any_type, 3> {
  static constexpr std::string_view name = "clamp";
  static constexpr std::int64_t flops(const cost_context& c) {
    return 2 * c.result.shape.elements();
  }
  /// Sends the cotangent to the operand that the result equals. If x equals a bound, no operand
  /// gets it.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const value_id low = b.p.operand(c.op, 0), x = b.p.operand(c.op, 1),
                   high = b.p.operand(c.op, 2);
    const value_id zero = ops::scalar(b, b.type(c.cotangent).element, 0);
    const auto give = [&](int operand, value_id condition) {
      c.operands[static_cast<std::size_t>(operand)] =
          to_operand(c, operand, ops::select(b, condition, c.cotangent, zero));
    };
    const auto less = [&](value_id l, value_id r) {
      return ops::compare(b, ops::direction::lt, l, r);
    };
    if (c.wanted[0]) {
      const value_id below = less(x, low), open = less(low, high);
      give(0, ops::logical_and(b, below, open));
    }
    if (c.wanted[1]) {
      const value_id above = less(low, x), below = less(x, high);
      give(1, ops::logical_and(b, above, below));
    }
    if (c.wanted[2]) {
      const value_id raised = ops::maximum(b, low, x);
      give(2, less(high, raised));
    }
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::maximum)
PARTITA_OP(op::minimum)
PARTITA_OP(op::clamp)
}  // namespace partita

namespace partita::ops {

constexpr value_id maximum(builder& b, value_id x, value_id y) {
  return b.emit(def<op::maximum>, {x, y});
}
constexpr value_id minimum(builder& b, value_id x, value_id y) {
  return b.emit(def<op::minimum>, {x, y});
}
constexpr value_id clamp(builder& b, value_id low, value_id x, value_id high) {
  return b.emit(def<op::clamp>, {low, x, high});
}

}  // namespace partita::ops
