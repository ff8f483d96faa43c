/// Sums of exponentials, with the laws `exp(x) exp(y) = exp(x + y)` and `exp(log(x)) = x`.
#pragma once

#include <partita/prove/elements/integers.hpp>

namespace partita::prove_detail {

/// factor * exp(of).
struct exponential_term {
  fingerprint factor, of;

  /// The variable that represents exp(of) in formulas.
  static constexpr fingerprint power(const fingerprint& of) {
    return of == fingerprint{} ? fingerprint{1, 1} : drawing(def<op::exp>.id).add(of).drawn();
  }
  constexpr fingerprint worth() const { return field::product(factor, power(of)); }
};

/// Real numbers that are sums of a few exponentials with factors. Their origin is stored, and the
/// terms are expanded when two of them are multiplied.
///
/// Law       The representation of exp(x) is a variable, like any function's result. Replacing the
///           product of those of x and y by that of x + y is an equality of real numbers. Equal
///           formulas are therefore equal as real numbers, however many terms are expanded.
class exponential_algebra : public integer_algebra {
 public:
  /// True if products of exponentials are turned into exponentials of sums, and quotients by
  /// products into quotients. (Not for large sums: then equal formulas may look different.)
  bool joins_exponentials = true;
  bool has_products = false;  ///< true if there were any

  /// exp(x) in the precision of a type: each precision has a random factor in the exponent.
  constexpr element exponential(dtype t, const element& x) {
    if (x.known && x == real(-__builtin_inf())) return real(0);
    if (x.of == fingerprint{}) return real(1);
    if (element made; at_numbers && x.known && is_power_of_two(4 * real_of(x), made))
      if (x.terms == 0) return made;
    fingerprint of = x.of;
    vec<element> factors;
    int left = x.terms > 0 && joins_exponentials ? most_looked_at : 0;
    take_logarithms(x.of, {1, 1}, of, factors, left);
    element made = power(field::product(of, precision(t)));
    for (const element& each : factors)
      made = each.terms > 0 ? multiplied(made, each) : scaled(made, each.of);
    if (log != nullptr) log->add(made.of, {origin::function, "exp", {}, {x}});
    return made;
  }

 protected:
  constexpr void note_sum(element& sum, const element& x, const element& y) {
    if (x.terms + y.terms == 0) return;
    const auto of = [](const element& each) { return each.terms == 0 ? 1 : each.terms; };
    note(sum, of(x) + of(y), {composition::sum, x.of, y.of});
  }
  /// Records x times a formula without exponentials.
  constexpr void note_scaled(element& product, const element& x, const fingerprint& by) {
    if (x.terms > 0) note(product, x.terms, {composition::scaled, x.of, by});
  }
  /// x y, where both have exponentials. A product of large sums is a single formula.
  constexpr element multiplied(const element& x, const element& y) {
    vec<exponential_term> all;
    int left = most_looked_at;
    has_products = true;
    if (joins_exponentials && x.terms * y.terms <= most_terms)
      add_products(x.of, y.of, {1, 1}, all, left);
    steps += static_cast<std::int64_t>(all.size());
    if (all.empty() || left <= 0) return formula_of(field::product(x.of, y.of));
    fingerprint sum;
    for (const auto& each : all) sum = field::sum(sum, each.worth());
    element made = formula_of(sum);
    note(made, x.terms * y.terms, {composition::product, x.of, y.of});
    return made;
  }
  /// A positive sum of exponentials as exp(of) times a sum that is the same for exp(c) x, whatever
  /// c is: one of its terms is 1. False for another formula, or if the sum is too large.
  constexpr bool normalize(const element& x, fingerprint& of, element& sum) {
    vec<exponential_term> terms;
    int left = x.terms > 0 && joins_exponentials ? most_looked_at : 0;
    add_terms(x.of, {1, 1}, terms, left);
    if (left <= 0) return false;
    fingerprint count, all;
    for (const auto& each : terms) {
      if (each.factor.a != each.factor.b || each.factor.a > 0xffffffff)
        return false;  // not counted
      count = field::sum(count, each.factor);
      all = field::sum(all, field::product(each.factor, each.of));
    }
    const fingerprint mean = field::product(all, field::inverse(count));
    fingerprint least;
    for (const auto& each : terms) {
      const fingerprint less = field::difference(mean, each.of);
      if (&each != terms.begin() && !(less < least)) continue;
      least = less;
      of = each.of;
    }
    sum = multiplied(x, power(field::opposite(of)));
    return true;
  }
  /// The logarithm of a positive sum of exponentials.
  constexpr bool logarithm_of_sum(dtype t, const element& x, element& made) {
    has_products = has_products || x.terms > 0;
    fingerprint of;
    element sum;
    if (!normalize(x, of, sum)) return false;
    of = field::product(of, field::inverse(precision(t)));
    made = formula(t, of);
    if (sum.of == fingerprint{1, 1}) return true;
    element log_of = function(def<op::log>.id, t, t, {sum});
    log_of.terms = 1;
    arguments_.add(log_of.of, sum);
    made = formula(t, field::sum(of, log_of.of));
    note(made, 2, {composition::sum, of, log_of.of});
    return true;
  }
  static constexpr element formula_of(const fingerprint& f) { return formula(dtype::f64, f); }
  /// x times a formula without exponentials.
  constexpr element scaled(const element& x, const fingerprint& by) {
    element made = formula_of(field::product(x.of, by));
    note_scaled(made, x, by);
    return made;
  }
  constexpr element power(const fingerprint& of) {
    element made = formula_of(exponential_term::power(of));
    note(made, 1, {composition::power, of, {}});
    return made;
  }

 private:
  /// For numbers as inputs, exp(x) is 2^(4 x), so that exp(x + y) = exp(x) exp(y) holds exactly.
  static constexpr bool is_power_of_two(double exponent, element& made) {
    if (!(exponent > -400 && exponent < 400)) return false;
    const auto n = static_cast<std::int64_t>(exponent);
    if (static_cast<double>(n) != exponent) return false;
    made = real(std::bit_cast<double>(static_cast<std::uint64_t>(1023 + n) << 52));
    return true;
  }
  static constexpr int most_terms = 256, most_looked_at = 4 * most_terms;
  /// The origin of a sum of exponentials: exp(x), x + y, x times y without exponentials, or x y
  /// where both have some.
  struct composition {
    enum kind : std::uint8_t { power, sum, scaled, product };
    kind how = power;
    fingerprint x, y;
  };
  facts<composition> compositions_;
  facts<element> arguments_;  ///< of logarithms of sums of exponentials

  /// A random factor for exponents.
  static constexpr fingerprint precision(dtype t) {
    return drawing(0xe9).add(static_cast<int>(t)).drawn();
  }
  /// Removes addends `log(y)` and `-log(y)` of an exponent; y and 1 / y are factors of the power.
  constexpr void take_logarithms(const fingerprint& x, const fingerprint& by, fingerprint& exponent,
                                 vec<element>& factors, int& left) const {
    if (--left <= 0) return;
    const bool once = by == fingerprint{1, 1}, over = field::opposite(by) == fingerprint{1, 1};
    if (const element* y = arguments_.find(x); y != nullptr && (once || over)) {
      exponent = field::difference(exponent, field::product(by, x));
      return factors.push_back(once ? *y : formula_of(field::inverse(y->of)));
    }
    const composition* m = compositions_.find(x);
    if (m == nullptr) return;
    if (m->how == composition::scaled)
      take_logarithms(m->x, field::product(by, m->y), exponent, factors, left);
    if (m->how != composition::sum) return;
    take_logarithms(m->x, by, exponent, factors, left);
    take_logarithms(m->y, by, exponent, factors, left);
  }

  constexpr void note(element& made, int terms, const composition& how) {
    if (terms > most_terms) return;
    made.terms = static_cast<std::int16_t>(terms);
    if (joins_exponentials) compositions_.add(made.of, how);
  }
  /// `left`: the number of formulas that may still be visited. (A formula may contain itself, as
  /// `x` in `x + (e - e)`.)
  constexpr void add_terms(const fingerprint& x, const fingerprint& factor,
                           vec<exponential_term>& terms, int& left) const {
    if (--left <= 0) return;
    const composition* m = compositions_.find(x);
    if (m == nullptr) return terms.push_back({field::product(factor, x), {}});
    if (m->how == composition::power) return terms.push_back({factor, m->x});
    if (m->how == composition::product) return add_products(m->x, m->y, factor, terms, left);
    if (m->how == composition::scaled)
      return add_terms(m->x, field::product(factor, m->y), terms, left);
    add_terms(m->x, factor, terms, left);
    add_terms(m->y, factor, terms, left);
  }
  constexpr void add_products(const fingerprint& x, const fingerprint& y, const fingerprint& factor,
                              vec<exponential_term>& terms, int& left) const {
    vec<exponential_term> first, second;
    add_terms(x, factor, first, left);
    add_terms(y, {1, 1}, second, left);
    for (const auto& a : first)
      for (const auto& b : second)
        if (--left > 0)
          terms.push_back({field::product(a.factor, b.factor), field::sum(a.of, b.of)});
  }
};

}  // namespace partita::prove_detail
