/// Sums and products of elements.
#pragma once

#include <partita/prove/elements/exponentials.hpp>

namespace partita::prove_detail {

/// Sums and products of real numbers, or of integers that wrap.
class arithmetic_algebra : public exponential_algebra {
 public:
  constexpr element sum(dtype t, const element& x, const element& y) {
    if (t == dtype::boolean) return either(x, y);
    if (x.known && y.known) return marked(sum_of_numbers(t, x, y), x, y);
    if (y.known && y.of == fingerprint{}) return x;
    if (x.known && x.of == fingerprint{}) return y;
    if (is_integer(t) && (x.known || y.known)) note_shift(t, x.known ? y : x, x.known ? x : y);
    element made = formula(t, field::sum(x.of, y.of));
    note_sum(made, x, y);
    if (log != nullptr) log->add(made.of, {origin::sum, {}, {}, {x, y}});
    return made.of == fingerprint{} ? small_number(t, 0) : made;
  }
  constexpr element opposite(dtype t, const element& x) {
    if (x.known)
      return is_floating(t) ? marked(real(-real_of(x)), x, x) : integer(t, negative(x.number));
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
    const bool matters = joins_exponentials || !has_products;
    const bool together = matters && choose_together(x, y);
    has_products = has_products || together;
    if (!together || !joins_exponentials) return product_plain(t, x, y);
    int left = most_splits;
    return map_pairs(
        x, y, [&](const element& i, const element& j) { return product_plain(t, i, j); }, left);
  }

 protected:
  /// (A formula counts as finite.)
  static constexpr bool is_finite(const element& x) {
    return !x.known || !is_floating(x.type) || prove_detail::is_finite(real_of(x));
  }
  /// A number that is computed from logarithms (see quotient_algebra::logarithm).
  static constexpr element marked(element number, const element& x, const element& y) {
    number.terms = static_cast<std::int16_t>(x.terms | y.terms);
    return number;
  }

 private:
  /// For elements that are not choices.
  constexpr element product_plain(dtype t, const element& x, const element& y) {
    if (x.known && y.known) return marked(product_of_numbers(t, x, y), x, y);
    if (x.known && x.of == fingerprint{1, 1}) return y;
    if (y.known && y.of == fingerprint{1, 1}) return x;
    if (!is_finite(x) || !is_finite(y)) {  // it neither cancels nor vanishes
      const bool turned = y.of < x.of;
      return function(def<op::multiply>.id, t, t, {turned ? y : x, turned ? x : y});
    }
    element made =
        x.terms > 0 && y.terms > 0 ? multiplied(x, y) : formula(t, field::product(x.of, y.of));
    if (y.terms == 0) note_scaled(made, x, y.of);
    if (x.terms == 0) note_scaled(made, y, x.of);
    if (log != nullptr) log->add(made.of, {origin::product, {}, {}, {x, y}});
    if (made.of == fingerprint{1, 1}) return small_number(t, 1);
    return made.of == fingerprint{} ? small_number(t, 0) : made;
  }
  static constexpr element sum_of_numbers(dtype t, const element& x, const element& y) {
    if (!is_floating(t))
      return integer(t, static_cast<std::int64_t>(static_cast<std::uint64_t>(x.number) +
                                                  static_cast<std::uint64_t>(y.number)));
    if (!is_finite(x) || !is_finite(y)) return real(real_of(x) + real_of(y));
    return real_or(real_of(x) + real_of(y), field::sum(x.of, y.of));
  }
  static constexpr element product_of_numbers(dtype t, const element& x, const element& y) {
    if (!is_floating(t))
      return integer(t, static_cast<std::int64_t>(static_cast<std::uint64_t>(x.number) *
                                                  static_cast<std::uint64_t>(y.number)));
    if (!is_finite(x) || !is_finite(y)) return real(real_of(x) * real_of(y));
    return real_or(real_of(x) * real_of(y), field::product(x.of, y.of));
  }
};

}  // namespace partita::prove_detail
