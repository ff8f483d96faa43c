/// constant (one value in every element) and iota.
#pragma once

#include <bit>
#include <limits>

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Every element has the same value. Attribute: its bits (a binary64 for floating-point types, the
/// integer itself for the others).
///
/// Shapes    () -> as declared
/// Tile map  () -> ([i, j, ...])
/// Errors    S117 the number is not a value of the element type
struct constant {
  static constexpr std::string_view name = "constant";
  static constexpr void infer(infer_context& c) { c.result = c.declared; }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) c.tile(c.result.shape[d], d);
  }
  static constexpr void derive(derive_context&) {}
  static constexpr double number(dtype t, std::int64_t bits) {
    return is_floating(t) ? std::bit_cast<double>(bits) : static_cast<double>(bits);
  }
  static constexpr void print(print_context& c) {
    const auto& t = c.p.type(c.p.op(c.op).result);
    const std::int64_t bits = c.p.attrs(c.op)[0];
    c.out << " {";
    if (is_floating(t.element))
      print_number(c.out, std::bit_cast<double>(bits));
    else
      c.out << bits;
    c.out << '}';
  }
  /// Six significant digits, as `%g` prints them.
  static constexpr void print_number(text& out, double v) {
    if (v != v) {
      out << "nan";
      return;
    }
    if (v < 0) {
      out << '-';
      v = -v;
    }
    if (v > 1.7e308) {
      out << "inf";
      return;
    }
    int exponent = 0;
    double scaled = v;
    while (scaled >= 10) scaled /= 10, ++exponent;
    while (scaled > 0 && scaled < 1) scaled *= 10, --exponent;
    auto digits = static_cast<std::int64_t>(scaled * 1e5 + 0.5);
    if (digits >= 1000000) digits /= 10, ++exponent;
    const bool scientific = exponent < -4 || exponent >= 6;
    char d[6] = {};
    for (int i = 5; i >= 0; --i, digits /= 10) d[i] = static_cast<char>('0' + digits % 10);
    int last = 5;
    while (last > 0 && d[last] == '0') --last;
    const int point = scientific ? 0 : exponent;  // digits up to and including this one are whole
    if (point < 0) {
      out << "0.";
      for (int i = -1; i > point; --i) out << '0';
      for (int i = 0; i <= last; ++i) out << d[i];
    } else {
      for (int i = 0; i <= (last > point ? last : point); ++i) {
        if (i == point + 1) out << '.';
        out << d[i];
      }
    }
    if (scientific) out << 'e' << exponent;
  }
};

/// result[i0, i1, ...] = i_dim. Attribute: dim.
///
/// Tile map  () -> ([i, j, ...]), all dimensions but dim (a slice along dim is no iota)
/// Errors    S113 not one dimension, or out of range
struct iota {
  static constexpr std::string_view name = "iota";
  static constexpr void infer(infer_context& c) {
    c.result = c.declared;
    if (c.attrs.size() != 1)
      return c.fail("S113", "iota: ", c.attrs.size(), " dimensions; one is needed");
    if (c.attrs[0] < 0 || c.attrs[0] >= c.declared.shape.rank)
      c.fail("S113", "iota: dimension ", c.attrs[0], " is out of range for ", c.declared);
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d)
      if (d != c.attrs[0]) c.tile(c.result.shape[d], d);
  }
  static constexpr void derive(derive_context&) {}
  static constexpr void print(print_context& c) { c.out << " {dim=" << c.p.attrs(c.op)[0] << '}'; }
};

}  // namespace partita::op

namespace partita::ops {

constexpr std::int64_t least_integer(dtype t) {
  if (t == dtype::i64) return std::numeric_limits<std::int64_t>::min();
  return t == dtype::i32 ? std::numeric_limits<std::int32_t>::min() : 0;
}
constexpr std::int64_t greatest_integer(dtype t) {
  if (t == dtype::i64) return std::numeric_limits<std::int64_t>::max();
  if (t == dtype::i32) return std::numeric_limits<std::int32_t>::max();
  return t == dtype::boolean ? 1 : 255;
}
/// Is this number a value of the element type? (Floating-point types round.) If not: S117.
constexpr bool fits(builder& b, dtype t, double v) {
  if (is_floating(t)) return true;
  const bool in_range = v >= static_cast<double>(least_integer(t)) &&
                        v <= static_cast<double>(greatest_integer(t)) && v < 0x1p63;
  if (in_range && static_cast<double>(static_cast<std::int64_t>(v)) == v) return true;
  text number;
  op::constant::print_number(number, v);
  b.p.error.record("S117", "constant: ", number, " is not a value of element type ", name_of(t));
  return false;
}

constexpr std::int64_t constant_bits(dtype t, double v) {
  return is_floating(t) ? std::bit_cast<std::int64_t>(v) : static_cast<std::int64_t>(v);
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
  if (v < least_integer(t) || v > greatest_integer(t)) {
    b.p.error.record("S117", "constant: ", v, " is not a value of element type ", name_of(t));
    return -1;
  }
  return b.scalar(def<op::constant>, t, v);
}
constexpr value_id iota(builder& b, const tensor_type& type, int dim) {
  return b.emit(def<op::iota>, {}, {dim}, type);
}

}  // namespace partita::ops
