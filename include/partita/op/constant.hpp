/// constant (one value in every element) and iota.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/op/vocabulary.hpp>
#include <partita/support/number_text.hpp>

namespace partita::op {

/// Minimum value of an integer type or i1.
constexpr std::int64_t least_integer(dtype t) {
  if (is_unsigned(t) || t == dtype::boolean) return 0;
  return INT64_MIN >> (64 - 8 * size_of(t));
}
/// Maximum value of an integer type or i1. For u64, returns the maximum of int64.
constexpr std::int64_t greatest_integer(dtype t) {
  if (t == dtype::boolean) return 1;
  const std::int64_t bits = 8 * size_of(t) - (is_unsigned(t) ? 0 : 1);
  return INT64_MAX >> (bits >= 63 ? 0 : 63 - bits);
}
/// True if `bits` represents a value of the integer type or i1. For u64, the int64 has the same 64
/// bits.
constexpr bool is_integer_of(dtype t, std::int64_t bits) {
  return t == dtype::u64 || (bits >= least_integer(t) && bits <= greatest_integer(t));
}
/// Prints an element, given by its bits, as text that read_element reads back to the same bits.
constexpr void print_element(text& out, dtype t, std::int64_t bits) {
  if (is_floating(t))
    print_number(out, std::bit_cast<double>(bits));
  else if (t == dtype::u64)
    out << static_cast<std::uint64_t>(bits);
  else
    out << bits;
}
/// Reads text that print_element wrote. Returns false if it is not a number. The range is checked
/// later (S117).
constexpr bool read_element(scanner& in, dtype t, std::int64_t& bits) {
  if (is_floating(t)) {
    double v = 0;
    const bool good = read_number(in, v);
    bits = std::bit_cast<std::int64_t>(v);
    return good;
  }
  if (t != dtype::u64) return in.integer(bits);
  std::uint64_t natural = 0;
  const bool good = in.natural(natural);
  bits = static_cast<std::int64_t>(natural);
  return good;
}

/// Fills a tensor with one value. Attribute: the value's bits (a binary64 for floating-point types,
/// the integer itself for others; for u64, the int64 with the same bits).
///
/// Shapes    () -> as declared
/// Tile map  () -> ([i, j, ...])
/// Errors    S117 the number is not a value of the element type
struct constant {
  static constexpr std::string_view name = "constant";
  static constexpr fusion_kind fusion = fusion_kind::loop;
  static constexpr int operand_count = 0;
  static constexpr bool is_constant = true;
  static constexpr void infer(infer_context& c) {
    c.result = c.declared;
    if (c.attrs.size() != 1)
      return c.fail("S117", "constant: ", c.attrs.size(), " numbers; one is needed");
    const dtype t = c.declared.element;
    if (!is_floating(t) && !is_integer_of(t, c.attrs[0]))
      c.fail("S117", "constant: ", c.attrs[0], " is not a value of element type ", name_of(t));
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) c.tile(c.result.shape[d], d);
  }
  static constexpr void derive(derive_context&) {}
  static constexpr double number(dtype t, std::int64_t bits) {
    if (t == dtype::u64) return static_cast<double>(static_cast<std::uint64_t>(bits));
    return is_floating(t) ? std::bit_cast<double>(bits) : static_cast<double>(bits);
  }
  static constexpr void print(print_context& c) {
    c.out << " {";
    print_element(c.out, c.p.type(c.p.op(c.op).result).element, c.p.attrs(c.op)[0]);
    c.out << '}';
  }
  static constexpr void parse(parse_context& c) {
    scanner in(c.in);
    std::int64_t bits = 0;
    if (!read_element(in, c.declared.element, bits) || !in.done())
      c.error.record("P011", "parse: attributes of constant: \"", c.in,
                     "\" is not a number of type ", name_of(c.declared.element));
    c.attrs.push_back(bits);
  }
};

/// Computes result[i0, i1, ...] = i_dim. Attribute: dim.
///
/// Tile map  () -> ([i, j, ...]); a slice along dim is an iota with the slice's extent plus its
///           start, if the element type represents all the numbers exactly
/// Errors    S113 dimension out of range
struct iota {
  static constexpr std::string_view name = "iota";
  static constexpr fusion_kind fusion = fusion_kind::loop;
  static constexpr int operand_count = 0;
  static constexpr void infer(infer_context& c) {
    c.result = c.declared;
    if (c.attrs.size() != 1)
      return c.fail("S113", "iota: ", c.attrs.size(), " dimensions; one is needed");
    if (c.attrs[0] < 0 || c.attrs[0] >= c.declared.shape.rank)
      c.fail("S113", "iota: dimension ", c.attrs[0], " is out of range for ", c.declared);
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) {
      const std::int64_t exact = exact_up_to(c.result.element);
      if (d == c.attrs[0] && (exact == 0 || c.result.shape[d] > exact)) continue;
      c.tile(c.result.shape[d], d);
      if (d == c.attrs[0]) c.offset();
    }
  }
  /// Largest n such that the type represents all integers from 0 to n, and their sums, exactly.
  /// Returns 0 for types that are not used this way.
  static constexpr std::int64_t exact_up_to(dtype t) {
    if (t == dtype::f32) return 1 << 24;
    if (t == dtype::f64) return std::int64_t{1} << 53;
    return is_integer(t) ? greatest_integer(t) : 0;
  }
  static constexpr void derive(derive_context&) {}
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.number("dim");
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::constant)
PARTITA_OP(op::iota)
}  // namespace partita

namespace partita::ops {

/// True if the number is a value of the element type; otherwise records S117. (Floating-point types
/// round, so every number fits.)
constexpr bool fits(builder& b, dtype t, double v) {
  if (is_floating(t)) return true;
  const bool in_range =
      v >= static_cast<double>(op::least_integer(t)) &&
      (t == dtype::u64 ? v < 0x1p64
                       : v <= static_cast<double>(op::greatest_integer(t)) && v < 0x1p63);
  if (in_range && (v >= 0x1p63 || static_cast<double>(static_cast<std::int64_t>(v)) == v))
    return true;
  text number;
  print_number(number, v);
  b.p.error.record("S117", "constant: ", number, " is not a value of element type ", name_of(t));
  return false;
}

constexpr std::int64_t constant_bits(dtype t, double v) {
  if (is_floating(t)) return std::bit_cast<std::int64_t>(v);
  if (v >= 0x1p63) return static_cast<std::int64_t>(static_cast<std::uint64_t>(v));
  return static_cast<std::int64_t>(v);
}
constexpr value_id constant(builder& b, const tensor_type& type, double v) {
  if (!fits(b, type.element, v)) return -1;
  return b.emit(def<op::constant>, {}, {constant_bits(type.element, v)}, type);
}
constexpr value_id scalar(builder& b, dtype t, double v) {
  if (!fits(b, t, v)) return -1;
  return b.scalar(def<op::constant>, t, constant_bits(t, v));
}
constexpr value_id integer(builder& b, dtype t, std::int64_t v) {
  if (is_floating(t)) return scalar(b, t, static_cast<double>(v));
  if (v < op::least_integer(t) || v > op::greatest_integer(t)) {
    b.p.error.record("S117", "constant: ", v, " is not a value of element type ", name_of(t));
    return -1;
  }
  return b.scalar(def<op::constant>, t, v);
}
constexpr value_id iota(builder& b, const tensor_type& type, int dim) {
  return b.emit(def<op::iota>, {}, {dim}, type);
}

}  // namespace partita::ops
