/// power, sqrt, rsqrt, cbrt: elementwise (see elementwise.hpp).
///
/// Cost      counted as one flop per element
/// Errors    S102 element types differ, S103 shapes differ, S104 element type not supported
#pragma once

#include <partita/op/math.hpp>
#include <partita/op/select.hpp>

namespace partita::op {

/// Raises x to the power y, for numbers. Floating point follows IEEE 754's pow (0 to the power 0 is
/// 1). For integers the product wraps. A negative exponent yields the truncated quotient 1 / x^-y:
/// 1 for x = 1, 1 or -1 for x = -1, otherwise 0 (also for x = 0).
struct power : one_type_op<power, need_number, 2> {
  static constexpr std::string_view name = "power";
  static constexpr bool costly = true;
  /// The slopes are y x^(y - 1) and log(x) x^y. The first is 0 if y is 0, and log(x) is 0 if x is
  /// 0, to avoid 0 times infinity.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const value_id x = b.p.operand(c.op, 0), y = b.p.operand(c.op, 1), z = b.p.op(c.op).result;
    const value_id zero = number_like(b, z, 0), one = number_like(b, z, 1);
    const auto is_zero = [&](value_id v) { return ops::compare(b, ops::direction::eq, v, zero); };
    if (c.wanted[0]) {
      const value_id constant = is_zero(y);
      const value_id less = ops::select(b, constant, one, ops::subtract(b, y, one));
      const value_id slope = ops::multiply(b, y, ops::power(b, x, less));
      const value_id g = ops::multiply(b, c.cotangent, ops::select(b, constant, zero, slope));
      c.operands[0] = to_operand(c, 0, g);
    }
    if (c.wanted[1]) {
      const value_id logarithm = ops::log(b, ops::select(b, is_zero(x), one, x));
      const value_id g = ops::multiply(b, c.cotangent, ops::multiply(b, logarithm, z));
      c.operands[1] = to_operand(c, 1, g);
    }
  }
};

struct sqrt : accurate_op<sqrt> {
  static constexpr std::string_view name = "sqrt";
  static constexpr bool costly = true;
  static constexpr void derive(derive_context& c) {
    const value_id y = c.b.p.op(c.op).result;
    const value_id half = number_like(c.b, y, 0.5);
    c.operands[0] = ops::divide(c.b, ops::multiply(c.b, c.cotangent, half), y);
  }
};

struct rsqrt : accurate_op<rsqrt> {
  static constexpr std::string_view name = "rsqrt";
  static constexpr bool costly = true;
  static constexpr value_id slope(builder& b, value_id, value_id y) {
    const value_id cube = ops::multiply(b, y, ops::multiply(b, y, y));
    return ops::multiply(b, cube, number_like(b, y, -0.5));
  }
};

/// The real cube root. The root of a negative number is negative.
struct cbrt : accurate_op<cbrt> {
  static constexpr std::string_view name = "cbrt";
  static constexpr bool costly = true;
  static constexpr void derive(derive_context& c) {
    const value_id y = c.b.p.op(c.op).result;
    const value_id three = number_like(c.b, y, 3), square = ops::multiply(c.b, y, y);
    c.operands[0] = ops::divide(c.b, c.cotangent, ops::multiply(c.b, square, three));
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::power)
PARTITA_OP(op::sqrt)
PARTITA_OP(op::rsqrt)
PARTITA_OP(op::cbrt)
}  // namespace partita

namespace partita::ops {

constexpr value_id power(builder& b, value_id x, value_id y) {
  return b.emit(def<op::power>, {x, y});
}
constexpr value_id sqrt(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::sqrt>(b, x, how);
}
constexpr value_id rsqrt(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::rsqrt>(b, x, how);
}
constexpr value_id cbrt(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::cbrt>(b, x, how);
}

}  // namespace partita::ops
