/// and, or, xor, not, popcnt, count_leading_zeros: elementwise (see elementwise.hpp), bitwise on
/// integers and logical on i1.
///
/// Errors    S102 element types differ, S103 shapes differ, S120 neither an integer type nor i1
///           (popcnt, count_leading_zeros: not an integer type)
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

struct logical_and : one_type_op<logical_and, need_bits, 2> {
  static constexpr std::string_view name = "and";
};

struct logical_or : one_type_op<logical_or, need_bits, 2> {
  static constexpr std::string_view name = "or";
};

struct logical_xor : one_type_op<logical_xor, need_bits, 2> {
  static constexpr std::string_view name = "xor";
};

struct logical_not : one_type_op<logical_not, need_bits, 1> {
  static constexpr std::string_view name = "not";
};

/// Counts the bits that are set.
struct popcnt : one_type_op<popcnt, need_integer, 1> {
  static constexpr std::string_view name = "popcnt";
};

/// Counts the zero bits above the highest set bit; for 0, returns the number of bits.
struct count_leading_zeros : one_type_op<count_leading_zeros, need_integer, 1> {
  static constexpr std::string_view name = "count_leading_zeros";
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::logical_and)
PARTITA_OP(op::logical_or)
PARTITA_OP(op::logical_xor)
PARTITA_OP(op::logical_not)
PARTITA_OP(op::popcnt)
PARTITA_OP(op::count_leading_zeros)
}  // namespace partita

namespace partita::ops {

constexpr value_id logical_and(builder& b, value_id x, value_id y) {
  return b.emit(def<op::logical_and>, {x, y});
}
constexpr value_id logical_or(builder& b, value_id x, value_id y) {
  return b.emit(def<op::logical_or>, {x, y});
}
constexpr value_id logical_xor(builder& b, value_id x, value_id y) {
  return b.emit(def<op::logical_xor>, {x, y});
}
constexpr value_id logical_not(builder& b, value_id x) { return b.emit(def<op::logical_not>, {x}); }
constexpr value_id popcnt(builder& b, value_id x) { return b.emit(def<op::popcnt>, {x}); }
constexpr value_id count_leading_zeros(builder& b, value_id x) {
  return b.emit(def<op::count_leading_zeros>, {x});
}

}  // namespace partita::ops
