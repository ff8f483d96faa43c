/// Readers of StableHLO and CHLO ops. Each op that is more than a renamed op of this library has a
/// function.
///
/// Source    the StableHLO specification, version 1.0, and the definitions of the CHLO dialect
#pragma once

#include <partita/stablehlo/batching.hpp>
#include <partita/stablehlo/custom_calls.hpp>
#include <partita/stablehlo/folding.hpp>
#include <partita/stablehlo/loops.hpp>
#include <partita/stablehlo/normalization.hpp>
#include <partita/stablehlo/numerics.hpp>
#include <partita/stablehlo/op_context.hpp>
#include <partita/stablehlo/philox.hpp>
#include <partita/stablehlo/products.hpp>
#include <partita/stablehlo/reducer.hpp>
#include <partita/stablehlo/regions.hpp>
#include <partita/stablehlo/scattering.hpp>
#include <partita/stablehlo/sorting.hpp>
#include <partita/stablehlo/special_functions.hpp>

namespace partita::stablehlo_detail {

/// Ops that differ from those of this library in their names at most.
struct same_op {
  std::string_view name;
  const op_def* op;
};
inline constexpr same_op same_ops[] = {
    {"abs", &def<op::abs>},
    {"add", &def<op::add>},
    {"and", &def<op::logical_and>},
    {"atan2", &def<op::atan2>},
    {"cbrt", &def<op::cbrt>},
    {"ceil", &def<op::ceil>},
    {"clamp", &def<op::clamp>},
    {"cosine", &def<op::cosine>},
    {"count_leading_zeros", &def<op::count_leading_zeros>},
    {"digamma", &def<op::digamma>},
    {"divide", &def<op::divide>},
    {"erf", &def<op::erf>},
    {"erf_inv", &def<op::erf_inv>},
    {"erfc", &def<op::erfc>},
    {"exponential", &def<op::exp>},
    {"exponential_minus_one", &def<op::expm1>},
    {"floor", &def<op::floor>},
    {"is_finite", &def<op::is_finite>},
    {"lgamma", &def<op::lgamma>},
    {"log", &def<op::log>},
    {"log_plus_one", &def<op::log1p>},
    {"logistic", &def<op::logistic>},
    {"maximum", &def<op::maximum>},
    {"minimum", &def<op::minimum>},
    {"multiply", &def<op::multiply>},
    {"negate", &def<op::negate>},
    {"not", &def<op::logical_not>},
    {"or", &def<op::logical_or>},
    {"popcnt", &def<op::popcnt>},
    {"power", &def<op::power>},
    {"remainder", &def<op::remainder>},
    {"round_nearest_afz", &def<op::round_nearest_away>},
    {"round_nearest_even", &def<op::round_nearest_even>},
    {"rsqrt", &def<op::rsqrt>},
    {"select", &def<op::select>},
    {"shift_left", &def<op::shift_left>},
    {"shift_right_arithmetic", &def<op::shift_right_arithmetic>},
    {"shift_right_logical", &def<op::shift_right_logical>},
    {"sign", &def<op::sign>},
    {"sine", &def<op::sine>},
    {"sqrt", &def<op::sqrt>},
    {"subtract", &def<op::subtract>},
    {"tan", &def<op::tan>},
    {"tanh", &def<op::tanh>},
    {"xor", &def<op::logical_xor>},
};
// ---- Constants and shapes

constexpr void read_constant(op_context& c) {
  tensor_type type = c.o.result_types.empty() ? tensor_type() : c.declared();
  std::string_view value = c.o.attribute("value");
  if (c.o.result_types.empty()) return c.fail("H005", "its type is needed");
  vec<std::int64_t> bits;
  text fault;
  if (!read_dense(value, type, bits, fault)) return c.fail("H008", fault);
  if (bits.size() == 1)
    c.give(c.b.emit(def<op::constant>, {}, {bits[0]}, type));
  else
    c.give(ops::literal(c.b, type, as_ints(bits)));
}
/// The number of operands of an op; a dynamic op has one more, the shape of the result, which the
/// text also states.
constexpr std::size_t with_shape(const op_context& c, std::size_t operands) {
  return operands + (c.o.name.find("dynamic_") != std::string_view::npos ? 1 : 0);
}
constexpr void read_iota(op_context& c) {
  const auto dim = c.needed("dim", "iota_dimension");
  const tensor_type type = c.declared();
  const int d = c.dimension(dim);
  if (c.count(with_shape(c, 0))) c.give(ops::iota(c.b, type, d));
}
constexpr void read_broadcast_in_dim(op_context& c) {
  const auto dims = c.numbers("dims", "broadcast_dimensions");
  const tensor_type type = c.declared();
  if (!c.count(with_shape(c, 1))) return;
  if (!is_sorted(dims)) return c.give(repeated(c.b, c.x(0), type.shape, dims));
  const value_id operands[] = {c.x(0)};
  c.give(c.b.emit(def<op::broadcast_in_dim>, operands, as_ints(dims), type));
}
/// Reads the `broadcast` of older versions, which adds leading dimensions.
constexpr void read_broadcast(op_context& c) {
  const tensor_type type = c.declared();
  if (!c.count(1)) return;
  vec<std::int64_t> dims;
  for (int d = 0; d < c.type(0).shape.rank; ++d)
    dims.push_back(type.shape.rank - c.type(0).shape.rank + d);
  c.give(ops::broadcast_in_dim(c.b, c.x(0), type.shape, as_ints(dims)));
}
constexpr void read_reshape(op_context& c) {
  const tensor_type type = c.declared();
  if (c.count(with_shape(c, 1))) c.give(ops::reshape(c.b, c.x(0), type.shape));
}
/// Reads `chlo.constant_like %x {value = 1.0 : f32}`.
constexpr void read_constant_like(op_context& c) {
  if (!c.count(1)) return;
  const double number = c.real("value");
  if (!c.failed())
    c.give(ops::broadcast_in_dim(c.b, c.scalar_like(c.x(0), number), c.type(0).shape, {}));
}
constexpr void read_convert(op_context& c) {
  const tensor_type type = c.declared();
  if (c.count(1)) c.give(c.b.emit(def<op::convert>, {c.x(0)}, {}, tensor_type{type.element, {}}));
}
constexpr void read_bitcast_convert(op_context& c) {
  const tensor_type type = c.declared();
  if (c.count(1)) c.give(ops::bitcast_convert(c.b, c.x(0), type.element));
}
/// Reads `format = e5m10`.
constexpr void read_reduce_precision(op_context& c) {
  std::int64_t exponent = 0, mantissa = 0;
  if (c.o.has("format")) {
    const std::string_view format = c.o.attribute("format");
    const std::size_t m = format.find('m');
    if (m == std::string_view::npos || !read_integer(format.substr(1, m - 1), exponent) ||
        !read_integer(format.substr(m + 1), mantissa))
      c.fail("H005", "format ", format, " is not like e5m10");
  } else {
    exponent = c.needed("exponent_bits");
    mantissa = c.needed("mantissa_bits");
  }
  if (c.count(1))
    c.give(
        ops::reduce_precision(c.b, c.x(0), static_cast<int>(exponent), static_cast<int>(mantissa)));
}
constexpr void read_transpose(op_context& c) {
  const auto dims = c.numbers("dims", "permutation");
  if (!c.count(1)) return;
  bool moves = dims.size() != static_cast<std::size_t>(c.type(0).shape.rank);
  for (std::size_t d = 0; d < dims.size(); ++d)
    moves = moves || dims[d] != static_cast<std::int64_t>(d);
  c.give(moves ? ops::transpose(c.b, c.x(0), as_ints(dims)) : c.x(0));
}
/// Reads an op that sets a dimension to its actual size, as TensorFlow writes it; it changes
/// nothing.
constexpr void read_set_dimension_size(op_context& c) {
  const int d = c.dimension(c.needed("dim", "dimension"));
  if (!c.count(2)) return;
  std::int64_t size = -1;
  if (d >= c.type(0).shape.rank || !op_detail::integer_constant(c.b.p, c.x(1), size) ||
      size != c.type(0).shape[d])
    return c.fail("H013", "of dimension ", d, " of ", c.type(0),
                  "; only a constant that is the size of the dimension is supported");
  c.give(c.x(0));
}
constexpr void read_reverse(op_context& c) {
  const auto dims = c.numbers("dims", "dimensions");
  if (!c.count(1)) return;
  c.give(dims.empty() ? c.x(0) : ops::reverse(c.b, c.x(0), as_ints(dims)));
}
constexpr void read_concatenate(op_context& c) {
  const auto dim = c.needed("dim", "dimension");
  const int d = c.dimension(dim);
  if (c.operands.empty() && !c.failed()) return c.fail("H012", "it has no operands");
  if (!c.failed()) c.give(ops::concatenate(c.b, {c.operands.data(), c.operands.size()}, d));
}
/// Reads `[0:4, 0:8:2]`.
constexpr void read_slice(op_context& c) {
  vec<std::int64_t> start = c.numbers("start_indices"), limit = c.numbers("limit_indices"),
                    strides = c.numbers("strides", {}, start.size(), 1);
  if (c.o.has("[]")) {
    for (std::string_view range : parts_of(inside(c.o.attribute("[]"), '[', ']'))) {
      std::int64_t numbers[3] = {0, 0, 1};
      int k = 0;
      bool good = true;
      while (good && k < 3) {
        const std::size_t colon = range.find(':');
        good = read_integer(range.substr(0, colon), numbers[k++]);
        if (colon == std::string_view::npos) break;
        range.remove_prefix(colon + 1);
      }
      if (!good || k < 2) return c.fail("H005", "a range is not like 0:4 or 0:8:2");
      start.push_back(numbers[0]);
      limit.push_back(numbers[1]);
      strides.push_back(numbers[2]);
    }
  }
  if (c.count(1) && c.per_dimension({&start, &limit, &strides}))
    c.give(ops::slice(c.b, c.x(0), as_ints(start), as_ints(limit), as_ints(strides)));
}
constexpr void read_pad(op_context& c) {
  if (!c.count(2)) return;
  const auto rank = static_cast<std::size_t>(c.type(0).shape.rank);
  const auto low = c.numbers("low", "edge_padding_low"),
             high = c.numbers("high", "edge_padding_high"),
             interior = c.numbers("interior", "interior_padding", rank);
  if (c.per_dimension({&low, &high, &interior}))
    c.give(ops::pad(c.b, c.x(0), c.x(1), as_ints(low), as_ints(high), as_ints(interior)));
}
constexpr void read_dynamic_slice(op_context& c) {
  const auto sizes = c.numbers("sizes", "slice_sizes");
  if (!c.count(static_cast<std::size_t>(c.type(0).shape.rank) + 1)) return;
  if (c.per_dimension({&sizes}))
    c.give(ops::dynamic_slice(c.b, c.x(0), {c.operands.data() + 1, c.operands.size() - 1},
                              as_ints(sizes)));
}
constexpr void read_dynamic_update_slice(op_context& c) {
  if (!c.count(static_cast<std::size_t>(c.type(0).shape.rank) + 2)) return;
  c.give(ops::dynamic_update_slice(c.b, c.x(0), c.x(1),
                                   {c.operands.data() + 2, c.operands.size() - 2}));
}

// ---- Elementwise

/// Returns `LT` for `LT`, `"LT"` or `#stablehlo<comparison_direction LT>`.
constexpr std::string_view enumerator(std::string_view word) {
  if (const std::size_t at = word.rfind(' '); at != std::string_view::npos)
    word = word.substr(at + 1);
  while (!word.empty() && !is_word_char(word.back())) word.remove_suffix(1);
  while (!word.empty() && !is_word_char(word.front())) word.remove_prefix(1);
  return word;
}
/// True if a comparison is in the total order of floats.
///
/// Errors    H005 the comparison type does not fit the operands
constexpr bool in_total_order(op_context& c) {
  std::string_view word = c.o.words.size() > 1 ? c.o.words[1] : std::string_view();
  if (c.o.has("compare_type")) word = enumerator(c.o.attribute("compare_type"));
  if (word.empty() || word == "NOTYPE" || !c.count(2)) return false;
  const dtype t = c.type(0).element;
  const bool is_signed = is_integer(t) && !is_unsigned(t);
  const bool fits = word == "FLOAT" || word == "TOTALORDER" ? is_floating(t)
                    : word == "SIGNED"                      ? is_signed
                    : word == "UNSIGNED"                    ? !is_floating(t) && !is_signed
                                                            : false;
  if (!fits)
    c.fail("H005", "comparison type \"", word, "\" does not fit ", c.type(0),
           "; FLOAT and TOTALORDER compare floats, SIGNED and UNSIGNED integers");
  return fits && word == "TOTALORDER";
}
constexpr std::string_view comparison_direction(const op_context& c) {
  if (c.o.has("comparison_direction")) return enumerator(c.o.attribute("comparison_direction"));
  return c.o.words.empty() ? std::string_view() : c.o.words[0];
}
constexpr void read_compare(op_context& c) {
  using enum ops::direction;
  const std::string_view word = comparison_direction(c);
  const bool total = in_total_order(c);
  constexpr struct {
    std::string_view name;
    ops::direction direction;
  } known[] = {{"EQ", eq}, {"NE", ne}, {"GE", ge}, {"GT", gt}, {"LE", le}, {"LT", lt}};
  for (const auto& k : known) {
    if (k.name != word) continue;
    if (!c.count(2)) return;
    const auto key = [&](value_id x) { return total ? op::total_order_key(c.b, x) : x; };
    const value_id x = key(c.x(0)), y = key(c.x(1));
    return c.give(ops::compare(c.b, k.direction, x, y));
  }
  c.fail("H005", "comparison direction \"", word, "\" is not one of EQ, NE, GE, GT, LE, LT");
}
constexpr void read_square(op_context& c) {
  if (c.count(1)) c.give(ops::multiply(c.b, c.x(0), c.x(0)));
}
/// |x| = infinity, or x = infinity, or x = -infinity.
constexpr void read_is_inf(op_context& c) {
  if (!c.count(1)) return;
  const double infinite = std::bit_cast<double>(std::int64_t{0x7ff} << 52);
  const bool negative = c.o.name.ends_with("is_neg_inf");
  const value_id x = c.o.name.ends_with("is_inf") ? ops::abs(c.b, c.x(0)) : c.x(0);
  c.give(
      ops::compare(c.b, ops::direction::eq, x, c.scalar_like(x, negative ? -infinite : infinite)));
}
/// The upper half of the product of two integers.
constexpr void read_mulhi(op_context& c) {
  if (!c.count(2)) return;
  const dtype t = c.type(0).element;
  const int bits = 8 * size_of(t);
  if (!is_integer(t) || bits > 32)
    return c.fail("H013", "operand of type ", c.type(0),
                  "; integers of up to 32 bits are supported");
  const bool is_signed = op::least_integer(t) < 0;
  const dtype wide = is_signed ? dtype::i64 : dtype::u64;
  const auto widened = [&](std::size_t i) { return ops::convert(c.b, c.x(i), wide); };
  const value_id product = ops::multiply(c.b, widened(0), widened(1));
  const value_id places = ops::integer(c.b, wide, bits);
  const value_id upper = is_signed ? ops::shift_right_arithmetic(c.b, product, places)
                                   : ops::shift_right_logical(c.b, product, places);
  c.give(ops::convert(c.b, upper, t));
}
/// Arithmetic for functions that are composed of other ops, with constants 0 and 1.
struct composed {
  op_context& c;
  value_id x = c.x(0);
  constexpr value_id number(double v) const { return c.scalar_like(x, v); }
  constexpr value_id one() const { return number(1); }
  constexpr value_id add(value_id a, value_id b) const { return ops::add(c.b, a, b); }
  constexpr value_id subtract(value_id a, value_id b) const { return ops::subtract(c.b, a, b); }
  constexpr value_id times(value_id a, value_id b) const { return ops::multiply(c.b, a, b); }
  constexpr value_id over(value_id a, value_id b) const { return ops::divide(c.b, a, b); }
  constexpr value_id twice(value_id a) const { return times(number(2), a); }
  constexpr value_id half(value_id a) const { return times(number(0.5), a); }
  /// sqrt((1 - x) (1 + x))
  constexpr value_id other_leg() const {
    return ops::sqrt(c.b, times(subtract(one(), x), add(one(), x)));
  }
  /// Extends a function of |x| to an odd function of x: applies the sign of x.
  constexpr value_id odd(value_id of_magnitude) const {
    return ops::select(c.b, ops::compare(c.b, ops::direction::lt, x, number(0)),
                       ops::negate(c.b, of_magnitude), of_magnitude);
  }
};
constexpr void read_composed(op_context& c) {
  if (!c.count(1)) return;
  const composed f{c};
  builder& b = c.b;
  std::string_view name = c.o.name;
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos)
    name.remove_prefix(dot + 1);
  if (name == "asin") return c.give(f.twice(ops::atan2(b, f.x, f.add(f.one(), f.other_leg()))));
  if (name == "acos") return c.give(f.twice(ops::atan2(b, f.other_leg(), f.add(f.one(), f.x))));
  if (name == "atan")
    return c.give(ops::atan2(b, f.x, ops::add(b, f.one(), f.times(f.number(0), f.x))));
  if (name == "sinh") {
    // (e + e / (e + 1)) / 2 with e = exp(|x|) - 1; for large e, exp(|x| - log 2).
    const value_id e = ops::expm1(b, ops::abs(b, f.x));
    const value_id small = f.half(f.add(e, f.over(e, f.add(e, f.one()))));
    const value_id large =
        ops::exp(b, f.subtract(ops::abs(b, f.x), f.number(0.69314718055994530942)));
    const value_id is_small = ops::compare(b, ops::direction::lt, ops::abs(b, f.x), f.one());
    return c.give(f.odd(ops::select(b, is_small, small,
                                    f.subtract(large, f.half(f.half(f.over(f.one(), large)))))));
  }
  if (name == "cosh") {
    const value_id large =
        ops::exp(b, f.subtract(ops::abs(b, f.x), f.number(0.69314718055994530942)));
    return c.give(f.add(large, f.half(f.half(f.over(f.one(), large)))));
  }
  if (name == "atanh")
    return c.give(f.half(f.subtract(ops::log1p(b, f.x), ops::log1p(b, ops::negate(b, f.x)))));
  if (name == "asinh") {
    // log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))) with a = |x|; for large a,
    // log(2 a).
    const value_id a = ops::abs(b, f.x), aa = f.times(a, a);
    const value_id root = ops::sqrt(b, f.add(aa, f.one()));
    const value_id small = ops::log1p(b, f.add(a, f.over(aa, f.add(f.one(), root))));
    const value_id large = f.add(ops::log(b, a), f.number(0.69314718055994530942));
    const value_id is_large = ops::compare(b, ops::direction::gt, a, f.number(1e4));
    return c.give(f.odd(ops::select(b, is_large, large, small)));
  }
  if (name == "acosh") {
    // log(x + sqrt((x + 1) (x - 1)))
    const value_id root =
        f.times(ops::sqrt(b, f.add(f.x, f.one())), ops::sqrt(b, f.subtract(f.x, f.one())));
    const value_id large = f.add(ops::log(b, f.x), f.number(0.69314718055994530942));
    const value_id is_large = ops::compare(b, ops::direction::gt, f.x, f.number(1e4));
    return c.give(ops::select(b, is_large, large, ops::log(b, f.add(f.x, root))));
  }
  c.fail("H004", "op \"", c.o.name, "\" is unknown");
}

/// The number next to x in the direction of y: adds or subtracts one in the bits of x, which are
/// ordered like the magnitudes.
constexpr void read_next_after(op_context& c) {
  if (!c.count(2)) return;
  using enum ops::direction;
  builder& b = c.b;
  const value_id x = c.x(0), y = c.x(1);
  const dtype t = c.type(0).element;
  const dtype bits = size_of(t) == 8 ? dtype::u64 : size_of(t) == 4 ? dtype::u32 : dtype::u16;
  const value_id x_bits = ops::bitcast_convert(b, x, bits),
                 y_bits = ops::bitcast_convert(b, y, bits);
  const auto number = [&](std::int64_t n) { return ops::integer(b, bits, n); };
  const value_id sign = ops::shift_left(b, number(1), number(8 * size_of(t) - 1));
  const auto sign_of = [&](value_id v) { return ops::logical_and(b, v, sign); };
  const auto magnitude = [&](value_id v) {
    return ops::logical_and(b, v, ops::logical_not(b, sign));
  };
  const value_id apart = ops::compare(b, ne, sign_of(x_bits), sign_of(y_bits));
  const value_id beyond = ops::compare(b, gt, magnitude(x_bits), magnitude(y_bits));
  const value_id less = ops::subtract(b, x_bits, number(1)), more = ops::add(b, x_bits, number(1));
  const value_id step = ops::select(b, ops::logical_or(b, apart, beyond), less, more);
  const value_id is_zero = ops::compare(b, eq, magnitude(x_bits), number(0));
  const value_id least = ops::logical_or(b, sign_of(y_bits), number(1));
  const value_id next = ops::bitcast_convert(b, ops::select(b, is_zero, least, step), t);
  const value_id nan = ops::logical_or(b, ops::compare(b, ne, x, x), ops::compare(b, ne, y, y));
  const value_id same = ops::select(b, ops::compare(b, eq, x, y), y, next);
  c.give(ops::select(b, nan, ops::add(b, x, y), same));
}

// ---- Products

/// Reads `batching_dims = [0] x [0], contracting_dims = [1] x [0]`, or dimension numbers.
constexpr void read_dot_general(op_context& c) {
  vec<std::int64_t> lists[4];  // lhs batch, rhs batch, lhs contracting, rhs contracting
  bool splat = false;
  if (c.o.has("dot_dimension_numbers")) {
    constexpr std::string_view names[] = {"lhs_batching_dimensions", "rhs_batching_dimensions",
                                          "lhs_contracting_dimensions",
                                          "rhs_contracting_dimensions"};
    for (std::string_view part : parts_of(inside(c.o.attribute("dot_dimension_numbers"), '<', '>')))
      for (int i = 0; i < 4; ++i)
        if (part.starts_with(names[i]))
          read_integers(part.substr(part.find('=') + 1), lists[i], splat);
  }
  const auto pair = [&](std::string_view name, int first) {
    const std::string_view value = c.o.attribute(name);
    const std::size_t x = value.find('x');
    if (value.empty()) return;
    if (x == std::string_view::npos || !read_integers(value.substr(0, x), lists[first], splat) ||
        !read_integers(value.substr(x + 1), lists[first + 1], splat))
      c.fail("H005", "attribute ", name, " = ", value, " is not like [0] x [0]");
  };
  pair("batching_dims", 0);
  pair("contracting_dims", 2);
  if (!c.count(2)) return;
  value_id x = c.x(0), y = c.x(1);
  // Operands whose type differs from that of the result are converted: products are exact in the
  // wider one.
  if (!c.o.result_types.empty()) {
    const dtype to = c.declared().element;
    x = ops::convert(c.b, x, to);
    y = ops::convert(c.b, y, to);
  }
  c.give(ops::dot_general(c.b, x, y,
                          {as_ints(lists[0]), as_ints(lists[1]), as_ints(lists[2]),
                           as_ints(lists[3]), read_product_precision(c)}));
}
/// Contracts the last dimension of lhs with the first of rhs.
constexpr void read_dot(op_context& c) {
  if (!c.count(2)) return;
  const std::int64_t last[] = {c.type(0).shape.rank - 1}, first[] = {0};
  value_id x = c.x(0), y = c.x(1);
  if (!c.o.result_types.empty()) {
    const dtype to = c.declared().element;
    x = ops::convert(c.b, x, to);
    y = ops::convert(c.b, y, to);
  }
  c.give(ops::dot_general(c.b, x, y, {{}, {}, last, first, read_product_precision(c)}));
}

/// Reads `[b, 0, 1, f]`: the position of the batch (or input feature), then of the feature, then of
/// the spatial dimensions.
constexpr bool read_roles(std::string_view list, char first, char second, vec<std::int64_t>& to) {
  const auto parts = parts_of(list);
  if (parts.size() < 2) return false;
  to.assign(parts.size(), -1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::int64_t n = 0;
    std::size_t at = 0;
    if (parts[i].size() == 1 && parts[i][0] == first)
      at = 0;
    else if (parts[i].size() == 1 && parts[i][0] == second)
      at = 1;
    else if (read_integer(parts[i], n) && n >= 0 && n + 2 < static_cast<std::int64_t>(parts.size()))
      at = static_cast<std::size_t>(n) + 2;
    else
      return false;
    if (to[at] >= 0) return false;
    to[at] = static_cast<std::int64_t>(i);
  }
  return true;
}
constexpr void read_convolution(op_context& c) {
  std::string_view dims = c.o.attribute("dim_numbers");
  if (c.o.has("dimension_numbers")) dims = inside(c.o.attribute("dimension_numbers"), '<', '>');
  const std::size_t x = dims.find("]x["), arrow = dims.find("->");
  vec<std::int64_t> lhs, rhs, result;
  if (x == std::string_view::npos || arrow == std::string_view::npos || arrow < x ||
      !read_roles(inside(dims.substr(0, x + 1), '[', ']'), 'b', 'f', lhs) ||
      !read_roles(inside(dims.substr(x + 2, arrow - x - 2), '[', ']'), 'i', 'o', rhs) ||
      !read_roles(inside(dims.substr(arrow), '[', ']'), 'b', 'f', result))
    return c.fail("H005", "dimension numbers ", dims.substr(0, 60),
                  " are not like [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]");
  const std::size_t n = lhs.size() - 2;
  vec<std::int64_t> stride = c.numbers("window_strides", {}, n, 1),
                    pad = c.numbers("padding", {}, 2 * n, 0),
                    lhs_dilate = c.numbers("lhs_dilation", {}, n, 1),
                    rhs_dilate = c.numbers("rhs_dilation", {}, n, 1),
                    reverse = c.numbers("window_reversal", {}, n, 0);
  if (c.o.has("window"))
    for (std::string_view part : parts_of(inside(c.o.attribute("window"), '{', '}'))) {
      const std::size_t equal = part.find('=');
      if (equal == std::string_view::npos) continue;
      std::string_view name = part.substr(0, equal);
      while (!name.empty() && is_space(name.back())) name.remove_suffix(1);
      vec<std::int64_t> list;
      bool splat = false;
      if (!read_integers(part.substr(equal + 1), list, splat))
        return c.fail("H005", "window ", part, " is not a list of numbers");
      (name == "stride"       ? stride
       : name == "pad"        ? pad
       : name == "lhs_dilate" ? lhs_dilate
       : name == "rhs_dilate" ? rhs_dilate
                              : reverse) = list;
    }
  if (!c.count(2)) return;
  const shape& taps = c.type(1).shape;
  if (stride.size() != n || pad.size() != 2 * n || lhs_dilate.size() != n ||
      rhs_dilate.size() != n || reverse.size() != n || rhs.size() != n + 2 ||
      result.size() != n + 2 || taps.rank != static_cast<int>(n) + 2)
    return c.fail("H005", "windows and dimension numbers differ in rank");
  vec<window_dim> windows;
  for (std::size_t d = 0; d < n; ++d)
    windows.push_back({taps[static_cast<int>(rhs[d + 2])], stride[d], lhs_dilate[d], rhs_dilate[d],
                       pad[2 * d], pad[2 * d + 1], reverse[d] != 0});
  value_id l = c.x(0), r = c.x(1);
  if (!c.o.result_types.empty()) {
    const dtype to = c.declared().element;
    l = ops::convert(c.b, l, to);
    r = ops::convert(c.b, r, to);
  }
  c.give(ops::convolution(c.b, l, r,
                          {as_ints(lhs),
                           as_ints(rhs),
                           as_ints(result),
                           {windows.data(), windows.size()},
                           c.number("feature_group_count", 1),
                           c.number("batch_group_count", 1),
                           read_product_precision(c)}));
}

// ---- Gather and scatter

/// Reads `#stablehlo.gather<offset_dims = [2], ...>`.
struct dimension_numbers {
  vec<std::int64_t> lists[5];
  std::int64_t vector_dim = 0;

  constexpr dimension_numbers(op_context& c, std::string_view value,
                              const std::string_view (&names)[5]) {
    for (std::string_view part : parts_of(inside(value, '<', '>'))) {
      std::string_view name = part.substr(0, part.find('='));
      while (!name.empty() && is_space(name.back())) name.remove_suffix(1);
      const std::size_t equal = part.find('=');
      if (equal == std::string_view::npos) continue;
      bool splat = false, good = false;
      if (name == "index_vector_dim") good = read_integer(part.substr(equal + 1), vector_dim);
      for (int i = 0; i < 5; ++i)
        if (name == names[i]) good = read_integers(part.substr(equal + 1), lists[i], splat);
      if (!good) c.fail("H005", "dimension number \"", part, "\" is unknown");
    }
  }
  /// Returns the indices of a gather (operand 1) without columns that count.
  constexpr value_id without_counting(op_context& c) {
    if (c.failed()) return -1;
    return stablehlo_detail::without_counting(c.b, c.x(0), c.x(1), lists, vector_dim);
  }
  constexpr ops::gather_dimensions numbers() const {
    return {as_ints(lists[0]), as_ints(lists[1]), as_ints(lists[2]),
            as_ints(lists[3]), as_ints(lists[4]), vector_dim};
  }
};
constexpr void read_gather(op_context& c) {
  constexpr std::string_view names[5] = {"offset_dims", "collapsed_slice_dims",
                                         "operand_batching_dims", "start_indices_batching_dims",
                                         "start_index_map"};
  dimension_numbers dims(c, c.o.attribute("dimension_numbers"), names);
  const auto sizes = c.numbers("slice_sizes");
  if (!c.count(2)) return;
  const value_id indices = dims.without_counting(c);
  c.give(ops::gather(c.b, c.x(0), indices, dims.numbers(), as_ints(sizes)));
}
/// True if all elements of a value are the identity of a combiner. (The value is a constant or a
/// repeated one.)
constexpr bool is_identity(const builder& b, value_id v, combiner how) {
  if (v < 0) return false;
  op_id o = b.p.producer(v);
  if (b.p.op(o).def->id == def<op::broadcast_in_dim>.id) o = b.p.producer(b.p.operand(o, 0));
  if (b.p.op(o).def->id != def<op::constant>.id) return false;
  const dtype t = b.type(v).element;
  const std::int64_t bits = b.p.attrs(o)[0];
  // (0 is the identity of a sum, unless all terms are -0.)
  if (how == combiner::add && is_floating(t) && std::bit_cast<double>(bits) == 0) return true;
  return bits == identity_bits(how, t);
}
/// Reads a scatter of one tensor. If the tensor is the identity of the combiner, emits a scatter
/// without an initial tensor, so that sharded updates yield partial results.
constexpr void scatter_one(op_context& c, const scatter_part& part, const dimension_numbers& dims,
                           value_id input, value_id indices, value_id updates) {
  if (part.kind == update_kind::keeps) return c.give(input);
  if (part.kind == update_kind::assigns)
    return c.give(
        ops::scatter(c.b, ops::scatter_update::assign, input, indices, updates, dims.numbers()));
  const auto update = static_cast<ops::scatter_update>(part.how);
  const bool nothing = is_identity(c.b, input, part.how);
  const shape to = c.failed() ? shape() : c.b.type(input).shape;
  c.give(nothing ? ops::scatter(c.b, update, to, indices, updates, dims.numbers())
                 : ops::scatter(c.b, update, input, indices, updates, dims.numbers()));
}
/// Reads a scatter. Several tensors are scattered separately if no result depends on the others;
/// otherwise, or for another kind of function, the scatter becomes a loop.
constexpr void read_scatter(op_context& c) {
  constexpr std::string_view names[5] = {"update_window_dims", "inserted_window_dims",
                                         "input_batching_dims", "scatter_indices_batching_dims",
                                         "scatter_dims_to_operand_dims"};
  dimension_numbers dims(c, c.o.attribute("scatter_dimension_numbers"), names);
  const std::size_t n = c.operands.size() / 2;
  if ((c.operands.size() % 2 == 0 || n == 0) && !c.failed())
    return c.fail("H012", c.operands.size(),
                  " operands; tensors, indices and updates for each tensor are needed");
  if (!c.region_count(1) || !captures_scalars(c)) return;
  const program& f = c.regions[0];
  const int arguments = f.input_count() - static_cast<int>(c.captured.size());
  if (f.output_count() != static_cast<int>(n) || arguments != static_cast<int>(2 * n))
    return c.fail("H012", "its program has ", arguments, " arguments and ", f.output_count(),
                  " results; ", 2 * n, " and ", n, " are needed");
  vec<scatter_part> parts;
  bool alone = true;
  for (int i = 0; i < static_cast<int>(n); ++i) {
    parts.push_back(scatter_part(f, i));
    alone = alone && parts.back().kind != update_kind::other;
  }
  // (The indices are operand n. `without_counting` looks at the first tensor; all have the same
  // shape.)
  const value_id indices =
      c.failed() ? -1 : without_counting(c.b, c.x(0), c.x(n), dims.lists, dims.vector_dim);
  if (c.failed() || indices < 0) return;
  if (!alone) return scatter_loop(c, dims.lists, dims.vector_dim, indices).give();
  for (std::size_t i = 0; i < n; ++i)
    scatter_one(c, parts[i], dims, c.x(i), indices, c.x(n + 1 + i));
}

// ---- Reductions

/// Combines the result x of a reduction with the initial value, unless that is the identity.
constexpr value_id with_initial(op_context& c, value_id x, value_id initial, combiner how) {
  if (c.failed() || initial < 0) return x;
  if (is_identity(c.b, initial, how)) return x;
  const value_id operands[] = {x, initial};
  return c.b.emit(combining_op(how), operands, {});
}
/// Reads `applies stablehlo.add`: an op as the program of a reduction.
constexpr program applied(op_context& c) {
  std::string_view name = c.o.words.empty() ? std::string_view() : c.o.words[0];
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos)
    name.remove_prefix(dot + 1);
  const op_def* const* found = nullptr;
  for (const auto& each : same_ops)
    if (each.name == name && each.op->operand_count == 2) found = &each.op;
  builder b;
  if (found == nullptr) {
    c.fail("H009", "applies \"", name, "\", which is not an op of two scalars");
    return {};
  }
  const tensor_type scalar{c.type(0).element, {}};
  const value_id x = ops::parameter(b, "", scalar), y = ops::parameter(b, "", scalar);
  const value_id made = b.emit(**found, {x, y});
  if (b.failed())
    c.fail("H009", "applies \"", name, "\", which does not combine ", c.type(0));
  else
    b.p.outputs.push_back({made, {}});
  return static_cast<program&&>(b.p);
}
/// True if the initial values of argmax or argmin lose against any element or equal it.
constexpr bool is_nothing(const op_context& c, ops::extreme which, const vec<std::int64_t>& dims) {
  const program& p = c.b.p;
  const op_id at = p.producer(c.x(3)), positions = p.producer(c.x(1));
  const combiner how = which == ops::extreme::argmax ? combiner::max : combiner::min;
  if (!is_identity(c.b, c.x(2), how) || p.op(at).def->id != def<op::constant>.id) return false;
  // Among equal values the smallest position wins, so the last position never does. If all elements
  // are equal, 0 wins as the first of the counted positions.
  const std::int64_t start = p.attrs(at)[0];
  const bool counted = p.op(positions).def->id == def<op::iota>.id && dims.size() == 1 &&
                       p.attrs(positions)[0] == dims[0];
  return start == identity_bits(combiner::min, c.type(1).element) || (start == 0 && counted);
}
/// Reads argmax and argmin. (Elements of i1 are compared as bytes.)
constexpr void read_extreme(op_context& c, ops::extreme which, const vec<std::int64_t>& dims) {
  const bool none = c.type(0).shape.elements() == 0;
  if (none || !same_shape(c.type(0).shape, c.type(1).shape)) return fold(c, as_ints(dims));
  const bool boolean = c.type(0).element == dtype::boolean;
  const value_id x = boolean ? ops::convert(c.b, c.x(0), dtype::u8) : c.x(0);
  const value_id first = ops::reduce(c.b, x, c.x(1), which, as_ints(dims));
  if (c.failed()) return;
  vec<value_id> made;
  made.push_back(boolean ? ops::convert(c.b, first, dtype::boolean) : first);
  made.push_back(first + 1);
  if (is_nothing(c, which, dims)) {
    for (value_id v : made) c.give(v);
  } else if (const folder f(c); f.fits()) {
    f.give(made);
  }
}
constexpr void read_reduce(op_context& c) {
  auto dims = c.numbers("dimensions");
  // (The order of the dimensions does not matter, so they are sorted.)
  for (std::size_t i = 1; i < dims.size(); ++i)
    for (std::size_t j = i; j > 0 && dims[j] < dims[j - 1]; --j) {
      const auto d = dims[j];
      dims[j] = dims[j - 1];
      dims[j - 1] = d;
    }
  const std::size_t n = c.operands.size() / 2;
  if (n == 0 || c.operands.size() % 2 != 0)
    return c.fail("H012", c.operands.size(),
                  " operands; each tensor and its initial value are needed");
  if (c.regions.empty()) {
    // `applies stablehlo.add`
    c.regions.push_back(applied(c));
    if (c.failed()) return;
  }
  if (!c.region_count(1) || !close_reduction(c)) return;
  ops::extreme which{};
  combiner how = combiner::add;
  if (c.operands.size() == 4 && find_extreme(c.regions[0], which))
    return read_extreme(c, which, dims);
  if (c.operands.size() > 2 || !find_combiner(c.regions[0], how)) {
    fold(c, as_ints(dims));
    return c.keep_results(n);
  }
  for (std::size_t i = 0; i < n; ++i)
    c.give(with_initial(c, ops::reduce(c.b, c.x(i), how, as_ints(dims)), c.x(n + i), how));
}
constexpr vec<window_dim> windows_of(op_context& c, std::size_t rank) {
  const auto size = c.numbers("window_dimensions", {}, rank, 1),
             stride = c.numbers("window_strides", {}, rank, 1),
             base = c.numbers("base_dilations", {}, rank, 1),
             dilation = c.numbers("window_dilations", {}, rank, 1),
             padding = c.numbers("padding", {}, 2 * rank, 0);
  vec<window_dim> w;
  if (size.size() != rank || stride.size() != rank || base.size() != rank ||
      dilation.size() != rank || padding.size() != 2 * rank) {
    c.fail("H005", "windows of rank ", rank, " are needed");
    return w;
  }
  for (std::size_t d = 0; d < rank; ++d)
    w.push_back(
        {size[d], stride[d], base[d], dilation[d], padding[2 * d], padding[2 * d + 1], false});
  return w;
}
/// Returns the only dimension along which windows have more than one element, if they reach from
/// each element to the first one or (`reverse`) to the last one; -1 otherwise.
constexpr int running_dim(const shape& s, const vec<window_dim>& w, bool& reverse) {
  int dim = -1;
  for (int d = 0; d < s.rank; ++d) {
    const window_dim& each = w[static_cast<std::size_t>(d)];
    const bool plain = each.stride == 1 && each.base_dilation == 1 && each.dilation == 1;
    if (plain && each.size == 1 && each.low == 0 && each.high == 0) continue;
    const bool ends = each.low == 0 || each.high == 0;
    if (!plain || !ends || dim >= 0 || each.size != s[d] || each.low + each.high != s[d] - 1)
      return -1;
    dim = d;
    reverse = each.low == 0;
  }
  return dim;
}
/// Reads `reduce_window`. Windows of all elements up to each one become a cumulative sum (or
/// another combination).
constexpr void read_reduce_window(op_context& c) {
  const std::size_t n = c.operands.size() / 2;
  if (n == 0 || c.operands.size() % 2 != 0)
    return c.fail("H012", c.operands.size(),
                  " operands; each tensor and its initial value are needed");
  if (!c.region_count(1) || !close_reduction(c)) return;
  const auto w = windows_of(c, static_cast<std::size_t>(c.type(0).shape.rank));
  combiner how = combiner::add;
  if (c.failed()) return;
  if (c.operands.size() > 2 || !find_combiner(c.regions[0], how)) {
    fold_windows(c, w);
    return c.keep_results(n);
  }
  bool reverse = false;
  const int dim = running_dim(c.type(0).shape, w, reverse);
  const value_id made = dim >= 0 ? ops::cumsum(c.b, c.x(0), dim, reverse, false, how)
                                 : ops::reduce_window(c.b, c.x(0), how, {w.data(), w.size()});
  c.give(with_initial(c, made, c.x(1), how));
}
constexpr void read_select_and_scatter(op_context& c) {
  if (!c.count(3) || !c.region_count(2) || !c.closed()) return;
  const auto w = windows_of(c, static_cast<std::size_t>(c.type(0).shape.rank));
  if (c.failed()) return;
  const program& select = c.regions[0];
  const value_id v =
      select.output_count() == 1 && select.input_count() == 2 ? select.outputs[0].value : -1;
  bool good = v >= 0 && is_made_by(select, v, def<op::compare>);
  ops::direction d{};
  if (good) {
    const op_id o = select.producer(v);
    d = static_cast<ops::direction>(select.attrs(o)[0]);
    good = input_of(select, select.operand(o, 0)) == 0 &&
           input_of(select, select.operand(o, 1)) == 1 && d != ops::direction::eq &&
           d != ops::direction::ne;
  }
  combiner how = combiner::add;
  if (!good || !find_combiner(c.regions[1], how) || how != combiner::add)
    return c.fail("H009", "its programs are not a comparison (GE, GT, LE, LT) and a sum");
  c.give(with_initial(c, ops::select_and_scatter(c.b, c.x(0), c.x(1), d, {w.data(), w.size()}),
                      c.x(2), how));
}
constexpr void read_sort(op_context& c) {
  if (!c.region_count(1) || !captures_scalars(c)) return;
  if (c.operands.empty()) return c.fail("H012", "it has no operands");
  std::int64_t along = c.number("dimension", c.type(0).shape.rank - 1);
  if (along < 0) along += c.type(0).shape.rank;
  const int dim = c.dimension(along);
  if (!c.failed() && dim >= c.type(0).shape.rank)
    c.fail("H005", "dimension ", dim, " is out of range of ", c.type(0));
  if (c.failed()) return;
  const sort_order order = find_order(c.regions[0]);
  if (!c.captured.empty() || order.keys.empty()) return sort_by_program(c, dim);
  // Keys come first; for a total order of floats, integers with the same order.
  vec<value_id> operands;
  vec<std::size_t> place(c.operands.size(), 0);
  vec<char> placed(c.operands.size(), 0);
  for (int k : order.keys) {
    const auto i = static_cast<std::size_t>(k);
    const value_id x = c.x(i), key = order.total ? op::total_order_key(c.b, x) : x;
    place[i] = operands.size();
    placed[i] = key == x ? 1 : 0;
    operands.push_back(key);
  }
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    if (placed[i] != 0) continue;
    place[i] = operands.size();
    operands.push_back(c.x(i));
  }
  if (c.failed()) return;
  const value_id first = ops::sort(c.b, {operands.data(), operands.size()}, dim,
                                   static_cast<int>(order.keys.size()), order.descending);
  for (std::size_t i = 0; i < place.size(); ++i)
    c.give(first < 0 ? -1 : first + static_cast<int>(place[i]));
}
constexpr void read_top_k(op_context& c) {
  const auto k = c.needed("k");
  if (c.count(1)) c.give(ops::top_k(c.b, c.x(0), k), 2);
}

// ---- Control

constexpr void read_case(op_context& c) {
  if (!c.count(1) || c.regions.empty()) return;
  value_id index = c.x(0);
  if (c.type(0).element == dtype::boolean) {
    // `if`: the first program runs if the index is true.
    if (!c.region_count(2)) return;
    index = ops::convert(c.b, ops::logical_not(c.b, index), dtype::i32);
  }
  const int n = c.regions[0].output_count();
  c.give(ops::case_of(c.b, index, {c.captured.data(), c.captured.size()},
                      static_cast<vec<program>&&>(c.regions)),
         n);
}
constexpr void read_barrier(op_context& c) {
  if (c.operands.empty()) return;
  c.give(ops::optimization_barrier(c.b, {c.operands.data(), c.operands.size()}),
         static_cast<int>(c.operands.size()));
}
/// Applies a function of scalars to each element.
constexpr void read_map(op_context& c) {
  if (c.operands.empty()) return c.fail("H012", "it has no operands");
  if (!c.region_count(1) || !captures_scalars(c)) return;
  const program& f = c.regions[0];
  if (f.inputs.size() != c.operands.size() + c.captured.size() || f.output_count() != 1)
    return c.fail("H012", "its program has ", f.inputs.size() - c.captured.size(),
                  " arguments and ", f.output_count(), " results; ", c.operands.size(),
                  " and 1 are needed");
  const shape all = c.type(0).shape;
  for (const value_id v : c.operands)
    if (!same_shape(c.b.type(v).shape, all))
      return c.fail("S103", "shapes ", all, " and ", c.b.type(v).shape, " differ");
  vec<value_id> inputs = c.operands;
  inputs.insert_back(c.captured.begin(), c.captured.end());
  const vec<value_id> made = vectorized(c, f)(all, inputs);
  if (!c.failed()) c.give(made[0]);
}
/// A tuple is represented by its values.
constexpr void read_tuple(op_context& c) {
  for (const value_id v : c.operands) c.give(v);
}
/// Reads `%0[1]` for a tuple whose values are the operands.
constexpr void read_get_tuple_element(op_context& c) {
  vec<std::int64_t> list;
  bool splat = false;
  if (c.o.has("index"))
    list.push_back(c.number("index", 0));
  else if (!read_integers(c.o.attribute("[]"), list, splat) || list.size() != 1)
    return c.fail("H005", "the number of the element is needed, as in %0[1]");
  const auto count = static_cast<std::int64_t>(c.operands.size());
  if (!c.failed() && (list[0] < 0 || list[0] >= count))
    c.fail("H005", "element ", list[0], " of a tuple of ", count);
  if (!c.failed()) c.give(c.x(static_cast<std::size_t>(list[0])));
}
constexpr void read_identity(op_context& c) {
  if (c.count(1)) c.give(c.x(0));
}
// ---- Linear algebra

constexpr void read_cholesky(op_context& c) {
  if (c.count(1)) c.give(ops::cholesky(c.b, c.x(0), c.number("lower", 0) != 0));
}
constexpr void read_triangular_solve(op_context& c) {
  const std::string_view transpose = c.o.attribute("transpose_a");
  if (c.count(2))
    c.give(ops::triangular_solve(
        c.b, c.x(0), c.x(1),
        {c.number("left_side", 1) != 0, c.number("lower", 1) != 0,
         c.number("unit_diagonal", 0) != 0,
         transpose.find("NO_TRANSPOSE") == std::string_view::npos && !transpose.empty()}));
}

// ---- The table

struct read_op {
  std::string_view name;
  void (*read)(op_context&);
};
inline constexpr read_op read_ops[] = {
    {"acos", &read_composed},
    {"acosh", &read_composed},
    {"asin", &read_composed},
    {"asinh", &read_composed},
    {"atan", &read_composed},
    {"atanh", &read_composed},
    {"batch_norm_grad", &read_batch_norm_grad},
    {"batch_norm_inference", &read_batch_norm_inference},
    {"batch_norm_training", &read_batch_norm_training},
    {"bessel_i1e", &read_bessel_i1e},
    {"bitcast_convert", &read_bitcast_convert},
    {"broadcast", &read_broadcast},
    {"broadcast_in_dim", &read_broadcast_in_dim},
    {"case", &read_case},
    {"cholesky", &read_cholesky},
    {"compare", &read_compare},
    {"concatenate", &read_concatenate},
    {"constant", &read_constant},
    {"constant_like", &read_constant_like},
    {"convert", &read_convert},
    {"convolution", &read_convolution},
    {"cosh", &read_composed},
    {"custom_call", &read_custom_call},
    {"dot", &read_dot},
    {"dot_general", &read_dot_general},
    {"dynamic_broadcast_in_dim", &read_broadcast_in_dim},
    {"dynamic_iota", &read_iota},
    {"dynamic_reshape", &read_reshape},
    {"dynamic_slice", &read_dynamic_slice},
    {"dynamic_update_slice", &read_dynamic_update_slice},
    {"einsum", &read_einsum},
    {"gather", &read_gather},
    {"get_dimension_size", &read_get_dimension_size},
    {"get_tuple_element", &read_get_tuple_element},
    {"if", &read_case},
    {"iota", &read_iota},
    {"is_inf", &read_is_inf},
    {"is_neg_inf", &read_is_inf},
    {"is_pos_inf", &read_is_inf},
    {"map", &read_map},
    {"matmul", &read_dot},
    {"mulhi", &read_mulhi},
    {"next_after", &read_next_after},
    {"optimization_barrier", &read_barrier},
    {"pad", &read_pad},
    {"polygamma", &read_polygamma},
    {"ragged_dot", &read_ragged_dot},
    {"reduce", &read_reduce},
    {"reduce_precision", &read_reduce_precision},
    {"reduce_window", &read_reduce_window},
    {"reshape", &read_reshape},
    {"reverse", &read_reverse},
    {"scatter", &read_scatter},
    {"rng_bit_generator", &read_rng_bit_generator},
    {"select_and_scatter", &read_select_and_scatter},
    {"set_dimension_size", &read_set_dimension_size},
    {"sharding_constraint", &read_identity},
    {"sinh", &read_composed},
    {"slice", &read_slice},
    {"sort", &read_sort},
    {"square", &read_square},
    {"top_k", &read_top_k},
    {"torch_index_select", &read_torch_index_select},
    {"transpose", &read_transpose},
    {"triangular_solve", &read_triangular_solve},
    {"tuple", &read_tuple},
    {"unary_einsum", &read_unary_einsum},
    {"while", &read_while},
    {"zeta", &read_zeta},
};

/// Broadcasts operands to the shape of the highest rank, along missing dimensions and dimensions of
/// one element. Operand dimensions map to the last ones, or to `broadcast_dimensions`.
///
/// Errors    H007 extents differ
/// Source    the definition of the CHLO dialect
constexpr void repeat_operands(op_context& c) {
  shape to;
  for (const value_id v : c.operands)
    if (v >= 0 && c.b.type(v).shape.rank > to.rank) to = c.b.type(v).shape;
  const vec<std::int64_t> given = c.numbers("broadcast_dimensions");
  const auto dims_of = [&](const shape& s) {
    vec<std::int64_t> dims;
    const bool listed = s.rank < to.rank && static_cast<int>(given.size()) == s.rank;
    for (int d = 0; d < s.rank; ++d)
      dims.push_back(listed ? given[static_cast<std::size_t>(d)] : d + to.rank - s.rank);
    return dims;
  };
  for (const value_id v : c.operands) {
    const shape s = c.failed() ? shape() : c.b.type(v).shape;
    const vec<std::int64_t> dims = dims_of(s);
    for (int d = 0; d < s.rank; ++d) {
      const int at = c.dimension(dims[static_cast<std::size_t>(d)]);
      if (c.failed()) return;
      if (at < to.rank && to[at] == 1) to[at] = s[d];
      if (at >= to.rank || (s[d] != 1 && s[d] != to[at]))
        return c.fail("H007", "shapes ", to, " and ", s, " differ");
    }
  }
  for (value_id& v : c.operands) {
    const shape s = c.failed() ? to : c.b.type(v).shape;
    if (same_shape(s, to) || s.rank == 0) continue;  // (The op repeats scalars.)
    const vec<std::int64_t> dims = dims_of(s);
    v = ops::broadcast_in_dim(c.b, v, to, as_ints(dims));
  }
}
/// Reads an op by its name without dialect; false if the name is unknown.
constexpr bool make_op(op_context& c, std::string_view name) {
  if (constexpr std::string_view broadcast = "broadcast_";
      name.starts_with(broadcast) && c.o.name.starts_with("chlo.")) {
    repeat_operands(c);
    name.remove_prefix(broadcast.size());
  }
  for (const auto& same : same_ops)
    if (same.name == name) {
      vec<std::int64_t> attrs;
      if (c.o.has("result_accuracy")) {
        read_accuracy(c).store(attrs);
        if (!has_accuracy(*same.op))
          c.fail("H005", "attribute result_accuracy is not one of this op");
      }
      if (!c.failed())
        c.give(c.b.emit(*same.op, {c.operands.data(), c.operands.size()},
                        {attrs.data(), attrs.size()}));
      return true;
    }
  for (const auto& each : read_ops)
    if (each.name == name) {
      each.read(c);
      return true;
    }
  return false;
}

}  // namespace partita::stablehlo_detail
