/// abs, sign, floor, ceil, round_nearest_even, round_nearest_away: elementwise (see
/// elementwise.hpp).
///
/// Errors    S104 not a number (abs, sign), not a floating-point type (the others)
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

/// Returns the magnitude. The minimum integer maps to itself, since overflow wraps. (StableHLO
/// defines abs for signed integers only; for u8 it is the identity.)
struct abs : one_type_op<abs, need_number, 1> {
  static constexpr std::string_view name = "abs";
  /// The derivative at 0 is 0.
  static constexpr void derive(derive_context& c) {
    const value_id slope = ops::sign(c.b, c.b.p.operand(c.op, 0));
    c.operands[0] = ops::multiply(c.b, c.cotangent, slope);
  }
};

/// Returns -1, 0 or 1, or the operand itself if it is a zero or NaN. (StableHLO defines sign for
/// signed integers only; for u8 it is 0 or 1.)
struct sign : step_op<sign, need_number> {
  static constexpr std::string_view name = "sign";
};

struct floor : step_op<floor, need_floating> {
  static constexpr std::string_view name = "floor";
};

struct ceil : step_op<ceil, need_floating> {
  static constexpr std::string_view name = "ceil";
};

/// Rounds to the nearest integer; ties go to the even one.
struct round_nearest_even : step_op<round_nearest_even, need_floating> {
  static constexpr std::string_view name = "round_nearest_even";
};

/// Rounds to the nearest integer; ties go away from zero. (StableHLO's round_nearest_afz.)
struct round_nearest_away : step_op<round_nearest_away, need_floating> {
  static constexpr std::string_view name = "round_nearest_away";
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::abs)
PARTITA_OP(op::sign)
PARTITA_OP(op::floor)
PARTITA_OP(op::ceil)
PARTITA_OP(op::round_nearest_even)
PARTITA_OP(op::round_nearest_away)
}  // namespace partita

namespace partita::ops {

constexpr value_id abs(builder& b, value_id x) { return b.emit(def<op::abs>, {x}); }
constexpr value_id sign(builder& b, value_id x) { return b.emit(def<op::sign>, {x}); }
constexpr value_id floor(builder& b, value_id x) { return b.emit(def<op::floor>, {x}); }
constexpr value_id ceil(builder& b, value_id x) { return b.emit(def<op::ceil>, {x}); }
constexpr value_id round_nearest_even(builder& b, value_id x) {
  return b.emit(def<op::round_nearest_even>, {x});
}
constexpr value_id round_nearest_away(builder& b, value_id x) {
  return b.emit(def<op::round_nearest_away>, {x});
}

}  // namespace partita::ops
