/// shift_left, shift_right_arithmetic, shift_right_logical: elementwise (see elementwise.hpp), the
/// bits of the first operand, moved by the number in the second.
///
/// A number that is negative, or not below the width of the type, shifts everything out: 0, or of
/// shift_right_arithmetic 0 or -1 (StableHLO leaves it open). The arithmetic one repeats the
/// highest bit of u8 too.
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
