/// add, subtract, multiply, divide, maximum, minimum, negate.
///
/// All are elementwise (see elementwise.hpp). Integer overflow wraps; floating point follows
/// IEEE 754; maximum and minimum give NaN if an operand is NaN. Integer division truncates.
///
/// Errors    S102 element types differ, S103 shapes differ, S104 not a number
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

template <class Op>
struct binary_op : elementwise_op {
  static constexpr int operand_count = 2;
  static constexpr void infer(infer_context& c) {
    same_elements(c, Op::name);
    need_number(c, Op::name);
    c.result = {c.operands[0].element, elementwise_shape(c, Op::name)};
  }
};

struct add : binary_op<add> {
  static constexpr std::string_view name = "add";
  static constexpr bool linear = true;
  static constexpr void derive(derive_context& c) {
    for (int i = 0; i < 2; ++i)
      if (c.wanted[static_cast<std::size_t>(i)])
        c.operands[static_cast<std::size_t>(i)] = to_operand(c, i, c.cotangent);
  }
};

struct subtract : binary_op<subtract> {
  static constexpr std::string_view name = "subtract";
  static constexpr bool linear = true;
  static constexpr void derive(derive_context& c) {
    if (c.wanted[0]) c.operands[0] = to_operand(c, 0, c.cotangent);
    if (c.wanted[1]) c.operands[1] = ops::negate(c.b, to_operand(c, 1, c.cotangent));
  }
};

struct multiply : binary_op<multiply> {
  static constexpr std::string_view name = "multiply";
  static constexpr void derive(derive_context& c) {
    const value_id x = c.b.p.operand(c.op, 0), y = c.b.p.operand(c.op, 1);
    if (c.wanted[0]) c.operands[0] = to_operand(c, 0, ops::multiply(c.b, c.cotangent, y));
    if (c.wanted[1]) c.operands[1] = to_operand(c, 1, ops::multiply(c.b, c.cotangent, x));
  }
};

struct divide : binary_op<divide> {
  static constexpr std::string_view name = "divide";
  static constexpr void derive(derive_context& c) {
    const value_id y = c.b.p.operand(c.op, 1), z = c.b.p.op(c.op).result;
    const value_id g = ops::divide(c.b, c.cotangent, y);
    if (c.wanted[0]) c.operands[0] = to_operand(c, 0, g);
    if (c.wanted[1]) c.operands[1] = ops::negate(c.b, to_operand(c, 1, ops::multiply(c.b, g, z)));
  }
};

/// The cotangent goes to the greater operand (maximum) or the lesser; to the first on a tie.
template <class Op, ops::direction FirstWins>
struct extremum_op : binary_op<Op> {
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

struct negate : elementwise_op {
  static constexpr std::string_view name = "negate";
  static constexpr int operand_count = 1;
  static constexpr bool linear = true;
  static constexpr void infer(infer_context& c) {
    need_number(c, name);
    c.result = c.operands[0];
  }
  static constexpr void derive(derive_context& c) { c.operands[0] = ops::negate(c.b, c.cotangent); }
};

}  // namespace partita::op

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
constexpr value_id maximum(builder& b, value_id x, value_id y) {
  return b.emit(def<op::maximum>, {x, y});
}
constexpr value_id minimum(builder& b, value_id x, value_id y) {
  return b.emit(def<op::minimum>, {x, y});
}
constexpr value_id negate(builder& b, value_id x) { return b.emit(def<op::negate>, {x}); }

}  // namespace partita::ops
