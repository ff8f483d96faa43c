/// compare, is_finite, select: elementwise comparison and choice.
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

/// Compares elementwise; with a NaN only `ne` is true. Attribute: the direction.
///
/// Errors    S102 element types differ, S103 shapes differ
struct compare : elementwise_op {
  static constexpr std::string_view name = "compare";
  static constexpr int operand_count = 2;
  static constexpr void infer(infer_context& c) {
    same_elements(c, name);
    c.result = {dtype::boolean, elementwise_shape(c, name)};
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.word("", {"eq", "ne", "lt", "le", "gt", "ge"});
  }
};

/// True if the element is neither infinite nor NaN.
///
/// Errors    S104 not a floating-point type
struct is_finite : elementwise_op {
  static constexpr std::string_view name = "is_finite";
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    need_floating(c, name);
    c.result = {dtype::boolean, c.operands[0].shape};
  }
};

/// Computes predicate ? x : y, elementwise; each operand may be a scalar.
///
/// Errors    S102 element types differ, S103 shapes differ, S104 the predicate is not i1
struct select : elementwise_op {
  static constexpr std::string_view name = "select";
  static constexpr int operand_count = 3;
  static constexpr void infer(infer_context& c) {
    if (c.operands[0].element != dtype::boolean)
      c.fail("S104", "select: the predicate has element type ",
             partita::name_of(c.operands[0].element), "; i1 is needed");
    same_elements(c, name, 1);
    c.result = {c.operands[1].element, elementwise_shape(c, name)};
  }
  static constexpr void derive(derive_context& c) {
    const value_id predicate = c.b.p.operand(c.op, 0);
    const value_id zero = ops::scalar(c.b, c.b.type(c.cotangent).element, 0);
    if (c.wanted[1])
      c.operands[1] = to_operand(c, 1, ops::select(c.b, predicate, c.cotangent, zero));
    if (c.wanted[2])
      c.operands[2] = to_operand(c, 2, ops::select(c.b, predicate, zero, c.cotangent));
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::compare)
PARTITA_OP(op::is_finite)
PARTITA_OP(op::select)
}  // namespace partita

namespace partita::ops {

constexpr value_id compare(builder& b, direction d, value_id x, value_id y) {
  return b.emit(def<op::compare>, {x, y}, {static_cast<std::int64_t>(d)});
}
constexpr value_id is_finite(builder& b, value_id x) { return b.emit(def<op::is_finite>, {x}); }
constexpr value_id select(builder& b, value_id predicate, value_id x, value_id y) {
  return b.emit(def<op::select>, {predicate, x, y});
}

}  // namespace partita::ops
