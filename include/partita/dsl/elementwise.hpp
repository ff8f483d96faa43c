/// The elementwise ops as functions and operators of typed tensors.
///
/// Operands broadcast as NumPy's do, and all but one of them may be plain numbers, which take the
/// element type of the tensor. See op/ for what each op computes of which element types.
#pragma once

#include <partita/dsl/broadcast.hpp>

namespace partita {

#define PARTITA_UNARY(function, emitter)                                                  \
  template <Tensor X>                                                                     \
  constexpr auto function(const X& x) {                                                   \
    return dsl_detail::apply(                                                             \
        [](builder& b, const value_id* v, const shape&) { return emitter(b, v[0]); }, x); \
  }
#define PARTITA_BINARY(function, name, emitter)                                       \
  template <class X, class Y>                                                         \
  requires dsl_detail::Operands<X, Y>                                                 \
  constexpr auto function(const X& x, const Y& y) {                                   \
    return dsl_detail::binary(x, y, [](builder& b, const value_id* v, const shape&) { \
      return dsl_detail::broadcast(b, name, emitter, v[0], v[1]);                     \
    });                                                                               \
  }

PARTITA_BINARY(operator+, "add", ops::add)
PARTITA_BINARY(operator-, "subtract", ops::subtract)
PARTITA_BINARY(operator*, "multiply", ops::multiply)
PARTITA_BINARY(operator/, "divide", ops::divide)
PARTITA_UNARY(operator-, ops::negate)
/// The sign is that of x, as in C (in NumPy that of y).
PARTITA_BINARY(remainder, "remainder", ops::remainder)
PARTITA_BINARY(operator%, "remainder", ops::remainder)
PARTITA_BINARY(maximum, "maximum", ops::maximum)
PARTITA_BINARY(minimum, "minimum", ops::minimum)

PARTITA_UNARY(abs, ops::abs)
PARTITA_UNARY(sign, ops::sign)
PARTITA_UNARY(floor, ops::floor)
PARTITA_UNARY(ceil, ops::ceil)
PARTITA_UNARY(round_nearest_even, ops::round_nearest_even)
PARTITA_UNARY(round_nearest_away, ops::round_nearest_away)

PARTITA_UNARY(exp, ops::exp)
PARTITA_UNARY(expm1, ops::expm1)
PARTITA_UNARY(log, ops::log)
PARTITA_UNARY(log1p, ops::log1p)
PARTITA_UNARY(logistic, ops::logistic)
PARTITA_UNARY(tanh, ops::tanh)
PARTITA_UNARY(erf, ops::erf)
PARTITA_UNARY(erfc, ops::erfc)
PARTITA_UNARY(erf_inv, ops::erf_inv)
PARTITA_UNARY(lgamma, ops::lgamma)
PARTITA_UNARY(digamma, ops::digamma)
PARTITA_BINARY(pow, "power", ops::power)
PARTITA_UNARY(sqrt, ops::sqrt)
PARTITA_UNARY(rsqrt, ops::rsqrt)
PARTITA_UNARY(cbrt, ops::cbrt)
PARTITA_UNARY(sin, ops::sine)
PARTITA_UNARY(cos, ops::cosine)
PARTITA_UNARY(tan, ops::tan)
PARTITA_BINARY(atan2, "atan2", ops::atan2)

namespace dsl_detail {

constexpr value_id shift_right(builder& b, value_id x, value_id by) {
  return is_unsigned(b.type(x).element) ? ops::shift_right_logical(b, x, by)
                                        : ops::shift_right_arithmetic(b, x, by);
}
/// Errors    S120 not of i1
constexpr value_id negation(builder& b, value_id x) {
  if (x >= 0 && b.type(x).element != dtype::boolean)
    b.p.error.record("S120", "!x: element type ", name_of(b.type(x).element),
                     " is not i1; use ~x for the bits, equal(x, 0) for zeros");
  return ops::logical_not(b, x);
}
template <ops::direction D>
constexpr value_id compare(builder& b, value_id x, value_id y) {
  return ops::compare(b, D, x, y);
}

}  // namespace dsl_detail

PARTITA_BINARY(operator&, "and", ops::logical_and)
PARTITA_BINARY(operator|, "or", ops::logical_or)
PARTITA_BINARY(operator^, "xor", ops::logical_xor)
PARTITA_UNARY(operator~, ops::logical_not)
PARTITA_UNARY(operator!, dsl_detail::negation)
PARTITA_UNARY(popcnt, ops::popcnt)
PARTITA_UNARY(count_leading_zeros, ops::count_leading_zeros)
PARTITA_BINARY(shift_left, "shift_left", ops::shift_left)
PARTITA_BINARY(shift_right_arithmetic, "shift_right_arithmetic", ops::shift_right_arithmetic)
PARTITA_BINARY(shift_right_logical, "shift_right_logical", ops::shift_right_logical)
PARTITA_BINARY(operator<<, "shift_left", ops::shift_left)
/// Arithmetic for the signed types, logical for the unsigned ones.
PARTITA_BINARY(operator>>, "shift_right", dsl_detail::shift_right)

// Comparisons and predicates give tensors of bool.
PARTITA_BINARY(equal, "compare", dsl_detail::compare<ops::direction::eq>)
PARTITA_BINARY(not_equal, "compare", dsl_detail::compare<ops::direction::ne>)
PARTITA_BINARY(operator<, "compare", dsl_detail::compare<ops::direction::lt>)
PARTITA_BINARY(operator<=, "compare", dsl_detail::compare<ops::direction::le>)
PARTITA_BINARY(operator>, "compare", dsl_detail::compare<ops::direction::gt>)
PARTITA_BINARY(operator>=, "compare", dsl_detail::compare<ops::direction::ge>)
PARTITA_UNARY(is_finite, ops::is_finite)

#undef PARTITA_UNARY
#undef PARTITA_BINARY

/// predicate ? x : y, elementwise. One of x and y may be a number.
template <Tensor P, class X, class Y>
requires dsl_detail::Operands<X, Y>
constexpr auto select(const P& predicate, const X& x, const Y& y) {
  if constexpr (Number<X>) {
    return select(predicate, dsl_detail::scalar_like(y, x), y);
  } else {
    return dsl_detail::apply(
        [](builder& b, const value_id* v, const shape&) {
          return dsl_detail::broadcast(b, "select", ops::select, v[0], v[1], v[2]);
        },
        predicate, x, dsl_detail::operand_like(x, y));
  }
}

/// min(max(x, low), high). The bounds may be numbers. (The order of operands is StableHLO's.)
template <class Low, Tensor X, class High>
requires((Tensor<Low> || Number<Low>)&&(Tensor<High> || Number<High>))  //
    constexpr auto clamp(const Low& low, const X& x, const High& high) {
  const auto least = dsl_detail::operand_like(x, low);
  const auto greatest = dsl_detail::operand_like(x, high);
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return dsl_detail::broadcast(b, "clamp", ops::clamp, v[0], v[1], v[2]);
      },
      least, x, greatest);
}

/// The values as another element type (see op/convert.hpp for rounding).
template <ElementType T, Tensor X>
constexpr auto convert(const X& x) {
  return dsl_detail::apply([](builder& b, const value_id* v,
                              const shape&) { return ops::convert(b, v[0], dtype_of<T>); },
                           x);
}

/// The same bits as another element type; see op/bitcast_convert.hpp for types of other sizes.
template <ElementType T, Tensor X>
constexpr auto bitcast_convert(const X& x) {
  return dsl_detail::apply([](builder& b, const value_id* v,
                              const shape&) { return ops::bitcast_convert(b, v[0], dtype_of<T>); },
                           x);
}

/// Rounds to a format with so many bits, in the same element type.
template <int ExponentBits, int MantissaBits, Tensor X>
constexpr auto reduce_precision(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::reduce_precision(b, v[0], ExponentBits, MantissaBits);
      },
      x);
}

}  // namespace partita
