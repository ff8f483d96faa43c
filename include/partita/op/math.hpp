/// exp, log, tanh, erf, sqrt, rsqrt: elementwise functions of floating-point tensors.
///
/// Cost      counted as one flop per element
/// Errors    S104 not a floating-point type
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

template <class Op>
struct math_op : elementwise_op {
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    need_floating(c, Op::name);
    c.result = c.operands[0];
  }
  /// The cotangent times `Op::slope(b, x, y)`, where y = f(x).
  static constexpr void derive(derive_context& c) {
    const value_id x = c.b.p.operand(c.op, 0), y = c.b.p.op(c.op).result;
    c.operands[0] = ops::multiply(c.b, c.cotangent, Op::slope(c.b, x, y));
  }
};

struct exp : math_op<exp> {
  static constexpr std::string_view name = "exp";
  static constexpr value_id slope(builder&, value_id, value_id y) { return y; }
};

struct log : math_op<log> {
  static constexpr std::string_view name = "log";
  static constexpr void derive(derive_context& c) {
    c.operands[0] = ops::divide(c.b, c.cotangent, c.b.p.operand(c.op, 0));
  }
};

struct tanh : math_op<tanh> {
  static constexpr std::string_view name = "tanh";
  static constexpr value_id slope(builder& b, value_id, value_id y) {
    return ops::subtract(b, ops::scalar(b, b.type(y).element, 1), ops::multiply(b, y, y));
  }
};

struct erf : math_op<erf> {
  static constexpr std::string_view name = "erf";
  static constexpr value_id slope(builder& b, value_id x, value_id) {
    constexpr double two_over_sqrt_pi = 1.1283791670955126;
    const value_id gauss = ops::exp(b, ops::negate(b, ops::multiply(b, x, x)));
    return ops::multiply(b, gauss, ops::scalar(b, b.type(x).element, two_over_sqrt_pi));
  }
};

struct sqrt : math_op<sqrt> {
  static constexpr std::string_view name = "sqrt";
  static constexpr void derive(derive_context& c) {
    const value_id y = c.b.p.op(c.op).result;
    const value_id half = ops::scalar(c.b, c.b.type(y).element, 0.5);
    c.operands[0] = ops::divide(c.b, ops::multiply(c.b, c.cotangent, half), y);
  }
};

struct rsqrt : math_op<rsqrt> {
  static constexpr std::string_view name = "rsqrt";
  static constexpr value_id slope(builder& b, value_id, value_id y) {
    const value_id cube = ops::multiply(b, y, ops::multiply(b, y, y));
    return ops::multiply(b, cube, ops::scalar(b, b.type(y).element, -0.5));
  }
};

}  // namespace partita::op

namespace partita::ops {

constexpr value_id exp(builder& b, value_id x) { return b.emit(def<op::exp>, {x}); }
constexpr value_id log(builder& b, value_id x) { return b.emit(def<op::log>, {x}); }
constexpr value_id tanh(builder& b, value_id x) { return b.emit(def<op::tanh>, {x}); }
constexpr value_id erf(builder& b, value_id x) { return b.emit(def<op::erf>, {x}); }
constexpr value_id sqrt(builder& b, value_id x) { return b.emit(def<op::sqrt>, {x}); }
constexpr value_id rsqrt(builder& b, value_id x) { return b.emit(def<op::rsqrt>, {x}); }

}  // namespace partita::ops
