/// add, subtract, multiply, divide, remainder, negate.
///
/// All are elementwise (see elementwise.hpp). Integer overflow wraps, and u8 is unsigned. Floating
/// point follows IEEE 754. For i1, add is "or" and multiply is "and". Integer division truncates. x
/// / 0 is -1 (all bits set) and minimum / -1 is minimum; StableHLO leaves both open.
///
/// Errors    S102 element types differ, S103 shapes differ; S104 not a number (all but add and
///           multiply)
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

struct add : one_type_op<add, any_type, 2> {
  static constexpr std::string_view name = "add";
  static constexpr bool linear = true;
  static constexpr bool adds = true;
  static constexpr void derive(derive_context& c) {
    for (int i = 0; i < 2; ++i)
      if (c.wanted[static_cast<std::size_t>(i)])
        c.operands[static_cast<std::size_t>(i)] = to_operand(c, i, c.cotangent);
  }
};

struct subtract : one_type_op<subtract, need_number, 2> {
  static constexpr std::string_view name = "subtract";
  static constexpr bool linear = true;
  static constexpr void derive(derive_context& c) {
    if (c.wanted[0]) c.operands[0] = to_operand(c, 0, c.cotangent);
    if (c.wanted[1]) c.operands[1] = ops::negate(c.b, to_operand(c, 1, c.cotangent));
  }
};

struct multiply : one_type_op<multiply, any_type, 2> {
  static constexpr std::string_view name = "multiply";
  static constexpr void derive(derive_context& c) {
    const value_id x = c.b.p.operand(c.op, 0), y = c.b.p.operand(c.op, 1);
    if (c.wanted[0]) c.operands[0] = to_operand(c, 0, ops::multiply(c.b, c.cotangent, y));
    if (c.wanted[1]) c.operands[1] = to_operand(c, 1, ops::multiply(c.b, c.cotangent, x));
  }
};

struct divide : one_type_op<divide, need_number, 2> {
  static constexpr std::string_view name = "divide";
  static constexpr bool costly = true;
  static constexpr void derive(derive_context& c) {
    const value_id y = c.b.p.operand(c.op, 1), z = c.b.p.op(c.op).result;
    const value_id g = ops::divide(c.b, c.cotangent, y);
    if (c.wanted[0]) c.operands[0] = to_operand(c, 0, g);
    if (c.wanted[1]) c.operands[1] = ops::negate(c.b, to_operand(c, 1, ops::multiply(c.b, g, z)));
  }
};

/// Remainder of the truncating division: it has the sign of the dividend, as C's fmod. For
/// integers, x % 0 is x, and minimum % -1 is 0.
struct remainder : one_type_op<remainder, need_number, 2> {
  static constexpr std::string_view name = "remainder";
  static constexpr bool costly = true;
  /// The remainder is x - q y, where the integer q is piecewise constant and has derivative 0.
  static constexpr void derive(derive_context& c) {
    const value_id x = c.b.p.operand(c.op, 0), y = c.b.p.operand(c.op, 1);
    if (c.wanted[0]) c.operands[0] = to_operand(c, 0, c.cotangent);
    if (!c.wanted[1]) return;
    const value_id whole = ops::subtract(c.b, x, c.b.p.op(c.op).result);
    const value_id q = ops::round_nearest_even(c.b, ops::divide(c.b, whole, y));
    c.operands[1] = ops::negate(c.b, to_operand(c, 1, ops::multiply(c.b, c.cotangent, q)));
  }
};

struct negate : one_type_op<negate, need_number, 1> {
  static constexpr std::string_view name = "negate";
  static constexpr bool linear = true;
  static constexpr void derive(derive_context& c) { c.operands[0] = ops::negate(c.b, c.cotangent); }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::add)
PARTITA_OP(op::subtract)
PARTITA_OP(op::multiply)
PARTITA_OP(op::divide)
PARTITA_OP(op::remainder)
PARTITA_OP(op::negate)
}  // namespace partita

namespace partita::ops {

constexpr value_id add(builder& b, value_id x, value_id y) { return b.emit(def<op::add>, {x, y}); }
constexpr value_id subtract(builder& b, value_id x, value_id y) {
  return b.emit(def<op::subtract>, {x, y});
}
constexpr value_id multiply(builder& b, value_id x, value_id y) {
  return b.emit(def<op::multiply>, {x, y});
}
constexpr value_id divide(builder& b, value_id x, value_id y) {
  return b.emit(def<op::divide>, {x, y});
}
constexpr value_id remainder(builder& b, value_id x, value_id y) {
  return b.emit(def<op::remainder>, {x, y});
}
constexpr value_id negate(builder& b, value_id x) { return b.emit(def<op::negate>, {x}); }

}  // namespace partita::ops
