/// literal: a constant with a value for each element.
#pragma once

#include <partita/op/constant.hpp>
#include <partita/support/quoted.hpp>

namespace partita::op {

/// Attributes: the bits of each element in row-major order, as `constant` encodes one.
///
/// Shapes    () -> as declared
/// Tile map  () -> (), no dimension can be sharded
/// Errors    S144 wrong number of elements, S117 a number is not a value of the element type
struct literal {
  static constexpr std::string_view name = "literal";
  static constexpr int operand_count = 0;
  static constexpr void infer(infer_context& c) {
    c.result = c.declared;
    const dtype t = c.declared.element;
    const std::int64_t* const bits = c.attrs.data();
    const auto count = static_cast<std::int64_t>(c.attrs.size());
    if (c.declared.shape.rank > max_rank) return;  // S100
    if (count != c.declared.shape.elements())
      return c.fail("S144", "literal: ", count, " elements are given; ", c.declared, " has ",
                    c.declared.shape.elements());
    for (std::int64_t i = 0; !is_floating(t) && i < count; ++i)
      if (!is_integer_of(t, bits[i]))
        return c.fail("S117", "literal: ", bits[i], " is not a value of element type ", name_of(t));
  }
  static constexpr void derive(derive_context&) {}
  static constexpr void print(print_context& c) {
    const dtype t = c.p.type(c.p.op(c.op).result).element;
    const auto attrs = c.p.attrs(c.op);
    const std::int64_t* const bits = attrs.data();
    c.out << " {";
    append_list(c.out, static_cast<int>(attrs.size()),
                [&](int i) { print_element(c.out, t, bits[i]); });
    c.out << '}';
  }
  static constexpr void parse(parse_context& c) {
    scanner in(c.in);
    while (!in.done()) {
      if (!c.attrs.empty() && !in.accept(", "))
        return c.error.record("P011", "parse: attributes of literal: \", \" expected, found \"",
                              short_name(in.rest()), '"');
      std::int64_t bits = 0;
      if (!read_element(in, c.declared.element, bits))
        return c.error.record("P011", "parse: attributes of literal: \"", short_name(in.rest()),
                              "\" is not a number of type ", name_of(c.declared.element));
      c.attrs.push_back(bits);
    }
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::literal)
}  // namespace partita

namespace partita::ops {

/// Emits a literal, or a `constant` if all elements are equal.
constexpr value_id literal(builder& b, const tensor_type& type, ints bits) {
  const std::int64_t* const list = bits.data();
  const std::size_t count = bits.size();
  bool equal = static_cast<std::int64_t>(count) == type.shape.elements();
  for (std::size_t i = 1; equal && i < count; ++i) equal = list[i] == list[0];
  if (!equal) return b.emit(def<op::literal>, {}, bits, type);
  const std::int64_t of_all = count == 0 ? 0 : list[0];
  return type.shape.rank == 0 ? b.scalar(def<op::constant>, type.element, of_all)
                              : b.emit(def<op::constant>, {}, {of_all}, type);
}

}  // namespace partita::ops
