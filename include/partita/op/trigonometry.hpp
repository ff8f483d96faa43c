/// sine, cosine, tan, atan2: elementwise functions of floating-point tensors, in radians.
///
/// Cost      counted as one flop per element
/// Errors    S102 element types differ, S103 shapes differ, S104 not a floating-point type
#pragma once

#include <partita/op/math.hpp>

namespace partita::op {

struct sine : accurate_op<sine> {
  static constexpr std::string_view name = "sine";
  static constexpr bool costly = true;
  /// The derivative uses a cosine with the accuracy of the sine.
  static constexpr void derive(derive_context& c) {
    const value_id x = c.b.p.operand(c.op, 0);
    c.operands[0] = ops::multiply(c.b, c.cotangent, ops::cosine(c.b, x, of(c.b.p, c.op)));
  }
};

struct cosine : accurate_op<cosine> {
  static constexpr std::string_view name = "cosine";
  static constexpr bool costly = true;
  static constexpr void derive(derive_context& c) {
    const value_id x = c.b.p.operand(c.op, 0), sine = ops::sine(c.b, x, of(c.b.p, c.op));
    c.operands[0] = ops::multiply(c.b, c.cotangent, ops::negate(c.b, sine));
  }
};

struct tan : accurate_op<tan> {
  static constexpr std::string_view name = "tan";
  static constexpr bool costly = true;
  static constexpr value_id slope(builder& b, value_id, value_id y) {
    const value_id square = ops::multiply(b, y, y), one = number_like(b, y, 1);
    return ops::add(b, one, square);
  }
};

/// Returns the angle of the point (x, y), for operands y and x, in [-pi, pi].
struct atan2 : one_type_op<atan2, need_floating, 2> {
  static constexpr std::string_view name = "atan2";
  static constexpr bool costly = true;
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const value_id y = b.p.operand(c.op, 0), x = b.p.operand(c.op, 1);
    const value_id xx = ops::multiply(b, x, x), yy = ops::multiply(b, y, y);
    const value_id g = ops::divide(b, c.cotangent, ops::add(b, xx, yy));
    if (c.wanted[0]) c.operands[0] = to_operand(c, 0, ops::multiply(b, g, x));
    if (c.wanted[1]) c.operands[1] = ops::negate(b, to_operand(c, 1, ops::multiply(b, g, y)));
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::sine)
PARTITA_OP(op::cosine)
PARTITA_OP(op::tan)
PARTITA_OP(op::atan2)
}  // namespace partita

namespace partita::ops {

constexpr value_id sine(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::sine>(b, x, how);
}
constexpr value_id cosine(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::cosine>(b, x, how);
}
constexpr value_id tan(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::tan>(b, x, how);
}
constexpr value_id atan2(builder& b, value_id y, value_id x) {
  return b.emit(def<op::atan2>, {y, x});
}

}  // namespace partita::ops
