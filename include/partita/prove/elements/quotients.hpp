/// Quotients, remainders and logarithms of elements.
#pragma once

#include <partita/prove/elements/arithmetic.hpp>

namespace partita::prove_detail {

/// Quotients are products with `1 / y`, which is a variable.
///
/// Law       1 / (x y) = (1 / x) (1 / y), 1 / (1 / y) = y, where one side is defined if and only if
///           the other is. x (1 / x) is 1 only for positive x: for sums of exponentials, see
///           exponential_algebra::normalize.
class quotient_algebra : public arithmetic_algebra {
 public:
  /// x y, with its factors for quotients by it.
  constexpr element product_of_factors(dtype t, const element& x, const element& y) {
    const element made = product(t, x, y);
    note_factors(made, x, y);
    return made;
  }
  constexpr element quotient(dtype t, const element& x, const element& y) {
    if (!is_floating(t))
      return x.known && y.known ? quotient_of_integers(t, x, y)
                                : function(def<op::divide>.id, t, t, {x, y});
    if (!y.known) return product_of_factors(t, x, inverse(t, y));
    const double by = real_of(y);
    if (by == 0 || !prove_detail::is_finite(by)) return function(def<op::divide>.id, t, t, {x, y});
    const element over = real_or(1 / by, field::inverse(y.of));
    const fingerprint of = field::product(x.of, over.of);
    if (!is_finite(x)) return real(real_of(x) / by);
    if (x.known) return marked(real_or(real_of(x) / by, of), x, y);
    element made = formula(t, of);
    note_scaled(made, x, over.of);
    note_factors(made, x, over);
    if (joins_exponentials) inverses_.add(over.of, y);
    if (log != nullptr) log->add(made.of, {origin::function, "divide", {}, {x, y}});
    return made;
  }
  /// The remainder of integers, including those of floating types: it has the sign of the dividend.
  constexpr element remainder(dtype t, const element& x, const element& y) {
    const element other = function(def<op::remainder>.id, t, t, {x, y});
    if (t == dtype::u64 || t == dtype::boolean || !x.known || !y.known) return other;
    std::int64_t n = x.number, by = y.number;
    if (is_floating(t) && (!is_small_integer(real_of(x), n) || !is_small_integer(real_of(y), by)))
      return other;
    if (by == 0 || (!is_floating(t) && by < 0)) return other;
    return is_floating(t) ? real(static_cast<double>(n % by)) : integer(t, n % by);
  }
  /// log(x), if it is more than a function. For numbers as inputs, log(2^n y) is n / 4 + log(y),
  /// as exp(x) is 2^(4 x). (A mark, `terms`, keeps exp(log(y)) from being another number than y.)
  constexpr bool logarithm(dtype t, const element& x, element& made) {
    if (!at_numbers || !x.known) return logarithm_of_sum(t, x, made);
    const double v = real_of(x);
    if (!(v >= 0x1p-1022) || !prove_detail::is_finite(v)) return false;
    const auto bits = std::bit_cast<std::uint64_t>(v), mantissa = bits & 0xfffffffffffffu;
    const auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
    const auto rest = static_cast<double>(mantissa == 0 ? 0 : 1 + drawing(mantissa).drawn().a % 32);
    made = real(0.25 * (exponent + rest));
    made.terms = 1;
    return true;
  }

 private:
  struct factors {
    element x, y;
  };
  facts<factors> factors_;   ///< by product
  facts<element> inverses_;  ///< by 1 / y: y
  static constexpr int most_factors = 8;

  constexpr void note_factors(const element& made, const element& x, const element& y) {
    if (joins_exponentials && !made.known && made != x && made != y && is_floating(made.type))
      factors_.add(made.of, {x, y});
  }
  constexpr element inverse(dtype t, const element& y, int depth = 0) {
    if (y.known) return quotient(t, real(1), y);
    has_products = true;
    if (const element* x = inverses_.find(y.of)) return *x;
    if (const factors* found = factors_.find(y.of); found != nullptr && depth < most_factors) {
      const factors f = *found;
      return product(t, inverse(t, f.x, depth + 1), inverse(t, f.y, depth + 1));
    }
    fingerprint of;
    element sum, made;
    if (normalize(y, of, sum))
      made = scaled(power(field::opposite(of)), field::inverse(sum.of));
    else
      made = function(def<op::divide>.id, t, t, {real(1), y});
    if (joins_exponentials) inverses_.add(made.of, y);
    return made;
  }
  static constexpr bool is_small_integer(double v, std::int64_t& n) {
    if (!(v > -0x1p53 && v < 0x1p53)) return false;
    n = static_cast<std::int64_t>(v);
    return static_cast<double>(n) == v;
  }
  constexpr element quotient_of_integers(dtype t, const element& x, const element& y) {
    if (y.number == 0 || t == dtype::u64 || (y.number == -1 && x.number == INT64_MIN))
      return function(def<op::divide>.id, t, t, {x, y});
    return integer(t, x.number / y.number);
  }
};

}  // namespace partita::prove_detail
