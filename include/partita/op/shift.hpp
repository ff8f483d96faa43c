/// shift_left, shift_right_arithmetic, shift_right_logical: elementwise (see elementwise.hpp),
/// shift the bits of the first operand by the number in the second.
///
/// A number that is negative, or at least the width of the type, shifts out all bits: the result is
/// 0, or 0 or -1 for shift_right_arithmetic (StableHLO leaves it open). shift_right_arithmetic
/// repeats the highest bit for u8 too.
///
/// Errors    S102 element types differ, S103 shapes differ, S120 not an integer type
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

struct shift_left : one_type_op<shift_left, need_integer, 2> {
  static constexpr std::string_view name = "shift_left";
};

struct shift_right_arithmetic : one_type_op<shift_right_arithmetic, need_integer, 2> {
  static constexpr std::string_view name = "shift_right_arithmetic";
};

struct shift_right_logical : one_type_op<shift_right_logical, need_integer, 2> {
  static constexpr std::string_view name = "shift_right_logical";
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::shift_left)
PARTITA_OP(op::shift_right_arithmetic)
PARTITA_OP(op::shift_right_logical)
}  // namespace partita

namespace partita::ops {

constexpr value_id shift_left(builder& b, value_id x, value_id by) {
  return b.emit(def<op::shift_left>, {x, by});
}
constexpr value_id shift_right_arithmetic(builder& b, value_id x, value_id by) {
  return b.emit(def<op::shift_right_arithmetic>, {x, by});
}
constexpr value_id shift_right_logical(builder& b, value_id x, value_id by) {
  return b.emit(def<op::shift_right_logical>, {x, by});
}

}  // namespace partita::ops
