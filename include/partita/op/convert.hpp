/// convert: converts values to another element type.
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

/// Floating point to integer truncates towards zero and saturates (NaN becomes 0; StableHLO leaves
/// both open). Any type to i1 tests for nonzero. i1 to a number is 0 or 1. A narrower float rounds
/// to nearest even.
struct convert : elementwise_op {
  static constexpr std::string_view name = "convert";
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    c.result = {c.declared.element, c.operands[0].shape};
  }
  static constexpr void derive(derive_context& c) {
    const dtype from = c.b.type(c.b.p.operand(c.op, 0)).element;
    if (is_floating(from)) c.operands[0] = ops::convert(c.b, c.cotangent, from);
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::convert)
}  // namespace partita

namespace partita::ops {

constexpr value_id convert(builder& b, value_id x, dtype to) {
  if (x >= 0 && b.type(x).element == to) return x;
  return b.emit(def<op::convert>, {x}, {}, tensor_type{to, {}});
}

}  // namespace partita::ops
