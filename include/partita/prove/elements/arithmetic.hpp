/// Sums and products of elements.
#pragma once

#include <partita/prove/elements/exponentials.hpp>

namespace partita::prove_detail {

/// Sums and products of real numbers, or of integers that wrap.
class arithmetic_algebra : public exponential_algebra {
 public:
  constexpr element sum(dtype t, const element& x, const element& y) {
    if (t == dtype::boolean) return either(x, y);
    if (x.known && y.known) return sum_of_numbers(t, x, y);
    if (y.known && y.of == fingerprint{}) return x;
    if (x.known && x.of == fingerprint{}) return y;
    if (is_integer(t) && (x.known || y.known)) note_shift(t, x.known ? y : x, x.known ? x : y);
    element made = formula(t, field::sum(x.of, y.of));
    note_sum(made, x, y);
    if (log != nullptr) log->add(made.of, {origin::sum, {}, {}, {x, y}});
    return made.of == fingerprint{} ? small_number(t, 0) : made;
  }
  constexpr element opposite(dtype t, const element& x) {
    if (x.known) return is_floating(t) ? real(-real_of(x)) : integer(t, negative(x.number));
    element made = formula(t, field::opposite(x.of));
    note_scaled(made, x, field::opposite({1, 1}));
    if (log != nullptr) log->add(made.of, {origin::opposite, {}, {}, {x}});
    return made;
  }
  constexpr element difference(dtype t, const element& x, const element& y) {
    return sum(t, x, opposite(t, y));
  }
  constexpr element product(dtype t, const element& x, const element& y) {
    if (t == dtype::boolean) return both(x, y);
    if (!choose_together(x, y)) return product_plain(t, x, y);
    has_products = true;
    if (!joins_exponentials) return product_plain(t, x, y);
    int left = most_splits;
    return map_pairs(
        x, y, [&](const element& i, const element& j) { return product_plain(t, i, j); }, left);
  }
  constexpr element quotient(dtype t, const element& x, const element& y) {
    if (!is_floating(t))
      return x.known && y.known ? quotient_of_integers(t, x, y)
                                : function(def<op::divide>.id, t, t, {x, y});
    if (!y.known) {
      element inverse;
      if (!invert(y, inverse)) inverse = function(def<op::divide>.id, t, t, {real(1), y});
      return product(t, x, inverse);
    }
    const double by = real_of(y);
    if (by == 0 || !prove_detail::is_finite(by)) return function(def<op::divide>.id, t, t, {x, y});
    if (x.known)
      if (const double r = real_of(x) / by; exact_product(r, by, real_of(x))) return real(r);
    element made = formula(t, field::product(x.of, field::inverse(y.of)));
    note_scaled(made, x, field::inverse(y.of));
    if (log != nullptr) log->add(made.of, {origin::function, "divide", {}, {x, y}});
    return made;
  }
  /// The remainder of integers, including those of floating types: it has the sign of the dividend.
  constexpr element remainder(dtype t, const element& x, const element& y) {
    const auto other = [&] { return function(def<op::remainder>.id, t, t, {x, y}); };
    if (t == dtype::u64 || t == dtype::boolean || !y.known) return other();
    if (!x.known) {
      if (is_integer(t) && y.number > 0) note_remainder(t, x, y.number, other().of);
      return other();
    }
    std::int64_t n = x.number, by = y.number;
    if (is_floating(t) && (!is_small_integer(real_of(x), n) || !is_small_integer(real_of(y), by)))
      return other();
    if (by == 0 || (!is_floating(t) && by < 0)) return other();
    return is_floating(t) ? real(static_cast<double>(n % by)) : integer(t, n % by);
  }

 private:
  /// For elements that are not choices.
  constexpr element product_plain(dtype t, const element& x, const element& y) {
    if (x.known && y.known) return product_of_numbers(t, x, y);
    if (x.known && x.of == fingerprint{1, 1}) return y;
    if (y.known && y.of == fingerprint{1, 1}) return x;
    if (!is_finite(x) || !is_finite(y)) {  // it neither cancels nor vanishes
      const bool turned = y.of < x.of;
      return function(def<op::multiply>.id, t, t, {turned ? y : x, turned ? x : y});
    }
    element made =
        x.terms > 0 && y.terms > 0 ? multiplied(t, x, y) : formula(t, field::product(x.of, y.of));
    if (y.terms == 0) note_scaled(made, x, y.of);
    if (x.terms == 0) note_scaled(made, y, x.of);
    if (log != nullptr) log->add(made.of, {origin::product, {}, {}, {x, y}});
    if (made.of == fingerprint{1, 1}) return small_number(t, 1);
    return made.of == fingerprint{} ? small_number(t, 0) : made;
  }
  /// (A formula counts as finite.)
  static constexpr bool is_finite(const element& x) {
    return !x.known || !is_floating(x.type) || prove_detail::is_finite(real_of(x));
  }
  static constexpr element sum_of_numbers(dtype t, const element& x, const element& y) {
    if (!is_floating(t))
      return integer(t, static_cast<std::int64_t>(static_cast<std::uint64_t>(x.number) +
                                                  static_cast<std::uint64_t>(y.number)));
    const double s = real_of(x) + real_of(y);
    return exact_sum(real_of(x), real_of(y), s) ? real(s) : formula(t, field::sum(x.of, y.of));
  }
  static constexpr element product_of_numbers(dtype t, const element& x, const element& y) {
    if (!is_floating(t))
      return integer(t, static_cast<std::int64_t>(static_cast<std::uint64_t>(x.number) *
                                                  static_cast<std::uint64_t>(y.number)));
    const double s = real_of(x) * real_of(y);
    return exact_product(real_of(x), real_of(y), s) ? real(s)
                                                    : formula(t, field::product(x.of, y.of));
  }
  constexpr void note_remainder(dtype t, const element& x, std::int64_t by, const fingerprint& of) {
    int left = most_splits;
    const interval in = range_of(t, x, left);
    const std::int64_t low = in.least < 0 ? 1 - by : 0, high = in.greatest > 0 ? by - 1 : 0;
    bounds_of(t).put(of, {of, of, low, high, low, high, 0});
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
