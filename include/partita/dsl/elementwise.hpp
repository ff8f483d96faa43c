/// Elementwise ops as functions and operators of typed tensors.
///
/// Operands broadcast as in NumPy. All but one may be plain numbers, which take the element type of
/// the tensor. The files of op/ state the semantics and element types of each op.
///
/// Errors    S102 element types differ, S103 shapes do not broadcast, S104 or S120 the op does not
///           support the element type, S117 a number is not a value of the element type
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

/// Adds; "or" for bool. Integer overflow wraps.
PARTITA_BINARY(operator+, "add", ops::add)
/// Subtracts. Integer overflow wraps.
PARTITA_BINARY(operator-, "subtract", ops::subtract)
/// Multiplies; "and" for bool. Integer overflow wraps.
PARTITA_BINARY(operator*, "multiply", ops::multiply)
/// Divides. Integer division truncates (see op/arithmetic.hpp for division by zero).
PARTITA_BINARY(operator/, "divide", ops::divide)
/// Negates.
PARTITA_UNARY(operator-, ops::negate)
/// Returns the remainder with the sign of x, as in C (NumPy uses the sign of y).
PARTITA_BINARY(remainder, "remainder", ops::remainder)
/// Returns `remainder(x, y)`.
PARTITA_BINARY(operator%, "remainder", ops::remainder)
/// Returns the larger element, or NaN if an operand is NaN; "or" for bool.
PARTITA_BINARY(maximum, "maximum", ops::maximum)
/// Returns the smaller element, or NaN if an operand is NaN; "and" for bool.
PARTITA_BINARY(minimum, "minimum", ops::minimum)

/// Returns the magnitude.
PARTITA_UNARY(abs, ops::abs)
/// Returns -1, 0 or 1, or the operand itself if it is a zero or NaN.
PARTITA_UNARY(sign, ops::sign)
/// Rounds down.
PARTITA_UNARY(floor, ops::floor)
/// Rounds up.
PARTITA_UNARY(ceil, ops::ceil)
/// Rounds to the nearest integer; ties go to the even one.
PARTITA_UNARY(round_nearest_even, ops::round_nearest_even)
/// Rounds to the nearest integer; ties go away from zero.
PARTITA_UNARY(round_nearest_away, ops::round_nearest_away)

/// Computes e^x.
PARTITA_UNARY(exp, ops::exp)
/// Computes exp(x) - 1, accurate near 0.
PARTITA_UNARY(expm1, ops::expm1)
/// Computes the natural logarithm.
PARTITA_UNARY(log, ops::log)
/// Computes log(1 + x), accurate near 0.
PARTITA_UNARY(log1p, ops::log1p)
/// Computes 1 / (1 + exp(-x)).
PARTITA_UNARY(logistic, ops::logistic)
/// Computes the hyperbolic tangent.
PARTITA_UNARY(tanh, ops::tanh)
/// Computes the error function.
PARTITA_UNARY(erf, ops::erf)
/// Computes 1 - erf(x), accurate where the result is near 0.
PARTITA_UNARY(erfc, ops::erfc)
/// Computes the inverse of erf.
PARTITA_UNARY(erf_inv, ops::erf_inv)
/// Computes the logarithm of the magnitude of the gamma function.
PARTITA_UNARY(lgamma, ops::lgamma)
/// Computes the derivative of lgamma, which has no derivative rule itself.
PARTITA_UNARY(digamma, ops::digamma)
/// Raises x to the power y (see op/power.hpp for integers).
PARTITA_BINARY(pow, "power", ops::power)
/// Computes the square root.
PARTITA_UNARY(sqrt, ops::sqrt)
/// Computes 1 / sqrt(x).
PARTITA_UNARY(rsqrt, ops::rsqrt)
/// Computes the real cube root.
PARTITA_UNARY(cbrt, ops::cbrt)
/// Computes the sine of an angle in radians.
PARTITA_UNARY(sin, ops::sine)
/// Computes the cosine of an angle in radians.
PARTITA_UNARY(cos, ops::cosine)
/// Computes the tangent of an angle in radians.
PARTITA_UNARY(tan, ops::tan)
/// Returns the angle of the point (x, y) in [-pi, pi], for operands y and x.
PARTITA_BINARY(atan2, "atan2", ops::atan2)

namespace dsl_detail {

constexpr value_id shift_right(builder& b, value_id x, value_id by) {
  return is_unsigned(b.type(x).element) ? ops::shift_right_logical(b, x, by)
                                        : ops::shift_right_arithmetic(b, x, by);
}
/// Negates booleans.
///
/// Errors    S120 not an i1
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

/// "and": logical for bool, bitwise for integers.
PARTITA_BINARY(operator&, "and", ops::logical_and)
/// "or": logical for bool, bitwise for integers.
PARTITA_BINARY(operator|, "or", ops::logical_or)
/// "xor": logical for bool, bitwise for integers.
PARTITA_BINARY(operator^, "xor", ops::logical_xor)
/// "not": logical for bool, bitwise for integers.
PARTITA_UNARY(operator~, ops::logical_not)
/// "not", for bool only (S120).
PARTITA_UNARY(operator!, dsl_detail::negation)
/// Counts the bits that are set.
PARTITA_UNARY(popcnt, ops::popcnt)
/// Counts the zero bits above the highest set bit.
PARTITA_UNARY(count_leading_zeros, ops::count_leading_zeros)
/// Shifts left by y bits (see op/shift.hpp for numbers out of range).
PARTITA_BINARY(shift_left, "shift_left", ops::shift_left)
/// Shifts right by y bits and repeats the highest bit.
PARTITA_BINARY(shift_right_arithmetic, "shift_right_arithmetic", ops::shift_right_arithmetic)
/// Shifts right by y bits and fills with zeros.
PARTITA_BINARY(shift_right_logical, "shift_right_logical", ops::shift_right_logical)
/// Returns `shift_left(x, y)`.
PARTITA_BINARY(operator<<, "shift_left", ops::shift_left)
/// Shifts right: arithmetic for signed types, logical for unsigned ones.
PARTITA_BINARY(operator>>, "shift_right", dsl_detail::shift_right)

// Comparisons and predicates return tensors of bool.
PARTITA_BINARY(equal, "compare", dsl_detail::compare<ops::direction::eq>)
PARTITA_BINARY(not_equal, "compare", dsl_detail::compare<ops::direction::ne>)
PARTITA_BINARY(operator<, "compare", dsl_detail::compare<ops::direction::lt>)
PARTITA_BINARY(operator<=, "compare", dsl_detail::compare<ops::direction::le>)
PARTITA_BINARY(operator>, "compare", dsl_detail::compare<ops::direction::gt>)
PARTITA_BINARY(operator>=, "compare", dsl_detail::compare<ops::direction::ge>)
/// True if the element is neither infinite nor NaN.
PARTITA_UNARY(is_finite, ops::is_finite)

#undef PARTITA_UNARY
#undef PARTITA_BINARY

/// Returns predicate ? x : y, elementwise. One of x and y may be a number.
///
/// Errors    S102 element types differ, S103 shapes differ, S104 the predicate is not i1
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

/// Returns min(max(x, low), high). The bounds may be numbers. (The order of operands is
/// StableHLO's.)
///
/// Errors    S102 element types differ, S103 shapes differ
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

/// Converts the values to another element type (see op/convert.hpp for rounding).
template <ElementType T, Tensor X>
constexpr auto convert(const X& x) {
  return dsl_detail::apply([](builder& b, const value_id* v,
                              const shape&) { return ops::convert(b, v[0], dtype_of<T>); },
                           x);
}

/// Reinterprets the bits as another element type (see op/bitcast_convert.hpp for types of other
/// sizes).
///
/// Errors    S142 sizes do not fit, or one of the types is i1
template <ElementType T, Tensor X>
constexpr auto bitcast_convert(const X& x) {
  return dsl_detail::apply([](builder& b, const value_id* v,
                              const shape&) { return ops::bitcast_convert(b, v[0], dtype_of<T>); },
                           x);
}

/// Rounds to a format with the given numbers of bits; the element type stays.
///
/// Errors    S104 not a floating-point type, S143 too few bits
template <int ExponentBits, int MantissaBits, Tensor X>
constexpr auto reduce_precision(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::reduce_precision(b, v[0], ExponentBits, MantissaBits);
      },
      x);
}

}  // namespace partita
