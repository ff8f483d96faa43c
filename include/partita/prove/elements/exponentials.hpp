/// Sums of exponentials: what `exp(x) exp(y) = exp(x + y)` makes of them.
#pragma once

#include <partita/prove/elements/integers.hpp>

namespace partita::prove_detail {

/// factor * exp(of).
struct exponential_term {
  fingerprint factor, of;

  /// What stands for exp(of) in formulas.
  static constexpr fingerprint power(const fingerprint& of) {
    return of == fingerprint{} ? fingerprint{1, 1} : drawing(def<op::exp>.id).add(of).drawn();
  }
};

/// Real numbers that are made of exponentials. Each is known by how it came to be, and is written
/// as a sum of terms where it is multiplied with another one.
class exponential_algebra : public integer_algebra {
 public:
  /// exp(x).
  constexpr element exponential(const element& x) {
    if (x.known && x == real(-__builtin_inf())) return real(0);
    if (x.of == fingerprint{}) return real(1);
    const fingerprint f = exponential_term::power(x.of);
    any_ = true;
    exponentials_.add(f, {composition::terms, {}, {}, {{{1, 1}, x.of}}});
    if (log != nullptr) log->add(f, {origin::function, "exp", {}, {x}});
    return formula(dtype::f64, f);
  }

 protected:
  constexpr bool has_exponentials(const element& x) const {
    return any_ && !x.known && exponentials_.find(x.of) != nullptr;
  }
  constexpr void note_sum(const fingerprint& sum, const element& x, const element& y) {
    if (has_exponentials(x) || has_exponentials(y))
      exponentials_.add(sum, {composition::sum, x.of, y.of, {}});
  }
  constexpr void note_scaled(const fingerprint& product, const element& x, const fingerprint& by) {
    if (has_exponentials(x)) exponentials_.add(product, {composition::scaled, x.of, by, {}});
  }
  /// x y, where both have exponentials, if they are no large sums.
  constexpr bool multiply(const element& x, const element& y, fingerprint& product) {
    vec<exponential_term> first, second;
    if (!terms_of(x, first) || !terms_of(y, second)) return false;
    if (first.size() * second.size() > most_terms) return false;
    vec<exponential_term> all;
    product = {};
    for (const auto& a : first)
      for (const auto& b : second) {
        const exponential_term t{field::product(a.factor, b.factor), field::sum(a.of, b.of)};
        product = field::sum(product, field::product(t.factor, exponential_term::power(t.of)));
        all.push_back(t);
      }
    exponentials_.add(product, {composition::terms, {}, {}, all});
    return true;
  }
  /// 1 / x, for a single exponential.
  constexpr bool invert(const element& x, element& inverse) {
    const made* found = x.known ? nullptr : exponentials_.find(x.of);
    if (found == nullptr || found->how != composition::terms || found->terms.size() != 1 ||
        !(found->terms[0].factor == fingerprint{1, 1}))
      return false;
    inverse = exponential(formula(dtype::f64, field::opposite(found->terms[0].of)));
    return true;
  }

 private:
  static constexpr std::size_t most_terms = 1024;
  enum class composition : std::uint8_t { terms, sum, scaled };
  /// The terms, x + y, or x times y, which has none.
  struct made {
    composition how = composition::terms;
    fingerprint x, y;
    vec<exponential_term> terms;
  };
  facts<made> exponentials_;
  bool any_ = false;

  constexpr bool terms_of(const element& x, vec<exponential_term>& terms) {
    int left = static_cast<int>(most_terms);
    add_terms(x.of, {1, 1}, terms, left);
    steps += static_cast<std::int64_t>(terms.size());
    return left > 0;
  }
  constexpr void add_terms(const fingerprint& x, const fingerprint& factor,
                           vec<exponential_term>& terms, int& left) const {
    if (--left <= 0) return;
    const made* m = exponentials_.find(x);
    if (m == nullptr) return terms.push_back({field::product(factor, x), {}});
    if (m->how == composition::scaled)
      return add_terms(m->x, field::product(factor, m->y), terms, left);
    if (m->how == composition::sum) {
      add_terms(m->x, factor, terms, left);
      return add_terms(m->y, factor, terms, left);
    }
    for (const auto& each : m->terms)
      terms.push_back({field::product(factor, each.factor), each.of});
    left -= static_cast<int>(m->terms.size());
  }
};

}  // namespace partita::prove_detail
