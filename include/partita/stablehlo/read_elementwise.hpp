/// Readers of elementwise ops: a table of those that this library has, and functions for those that
/// are composed of others.
#pragma once

#include <partita/stablehlo/op_context.hpp>

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

}  // namespace partita::stablehlo_detail
