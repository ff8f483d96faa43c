/// erfc, erf_inv, lgamma, digamma: elementwise special functions of floating-point tensors.
///
/// Cost      counted as one flop per element
/// Errors    S104 not a floating-point type
#pragma once

#include <partita/op/math.hpp>

namespace partita::op {

/// Computes 1 - erf(x), accurate where the result is near 0.
struct erfc : math_op<erfc> {
  static constexpr std::string_view name = "erfc";
  static constexpr bool costly = true;
  static constexpr value_id slope(builder& b, value_id x, value_id) {
    constexpr double minus_two_over_sqrt_pi = -1.1283791670955126;
    const value_id gauss = ops::exp(b, ops::negate(b, ops::multiply(b, x, x)));
    return ops::multiply(b, gauss, number_like(b, x, minus_two_over_sqrt_pi));
  }
};

/// The inverse of erf; infinite at 1 and -1, NaN outside of [-1, 1].
struct erf_inv : math_op<erf_inv> {
  static constexpr std::string_view name = "erf_inv";
  static constexpr bool costly = true;
  static constexpr value_id slope(builder& b, value_id, value_id y) {
    constexpr double half_sqrt_pi = 0.88622692545275801;
    return ops::multiply(b, ops::exp(b, ops::multiply(b, y, y)), number_like(b, y, half_sqrt_pi));
  }
};

/// Computes the logarithm of the magnitude of the gamma function; infinite at 0, -1, -2, ...
struct lgamma : math_op<lgamma> {
  static constexpr std::string_view name = "lgamma";
  static constexpr bool costly = true;
  static constexpr value_id slope(builder& b, value_id x, value_id) { return ops::digamma(b, x); }
};

/// The derivative of lgamma; NaN at 0, -1, -2, ... It has no derivative rule.
struct digamma : one_type_op<digamma, need_floating, 1> {
  static constexpr std::string_view name = "digamma";
  static constexpr bool costly = true;
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::erfc)
PARTITA_OP(op::erf_inv)
PARTITA_OP(op::lgamma)
PARTITA_OP(op::digamma)
}  // namespace partita

namespace partita::ops {

constexpr value_id erfc(builder& b, value_id x) { return b.emit(def<op::erfc>, {x}); }
constexpr value_id erf_inv(builder& b, value_id x) { return b.emit(def<op::erf_inv>, {x}); }
constexpr value_id lgamma(builder& b, value_id x) { return b.emit(def<op::lgamma>, {x}); }
constexpr value_id digamma(builder& b, value_id x) { return b.emit(def<op::digamma>, {x}); }

}  // namespace partita::ops
