/// Sums of products of elements, where terms count with weights.
#pragma once

#include <partita/prove/elements/tensors.hpp>

namespace partita::prove_detail {

/// A sum of products over nested loops. Each loop moves through some of the factors of the products
/// and through the result, or is summed.
class contraction {
 public:
  static constexpr int most_factors = 8;
  struct loop {
    std::int64_t size = 1;
    std::int64_t whole = 1;                ///< number of positions before shrinking
    std::int64_t step[most_factors] = {};  ///< in each factor
    std::int64_t to = -1;                  ///< step in the result; -1: summed
    vec<fingerprint> weights;              ///< of positions, if they are summed; empty: 1
  };

  constexpr contraction(algebra& a, dtype t) : a_(a), t_(t) {}
  constexpr void add(loop each) {
    (each.to < 0 ? summed_ : free_).push_back(static_cast<loop&&>(each));
  }
  constexpr void add_factor(const element* data) { data_.push_back(data); }

  constexpr void fill(element* to) {
    unroll();
    std::int64_t results = 1;
    for (const loop& each : free_) results = saturating_multiply(results, each.size);
    const auto terms = static_cast<std::int64_t>(weights_.size());
    a_.steps = saturating_add(a_.steps, saturating_multiply(results, 1 + terms / 4));
    if (a_.is_over()) return;
    std::int64_t at[max_rank * 2 + 2] = {}, base[most_factors] = {}, made = 0;
    for (std::int64_t n = 0; n < results; ++n) {
      to[made] = sum(base);
      for (std::size_t k = free_.size(); k-- > 0;) {
        const loop& each = free_[k];
        const std::int64_t by = ++at[k] < each.size ? 1 : 1 - each.size;
        for (std::size_t i = 0; i < data_.size(); ++i) base[i] += by * each.step[i];
        made += by * each.to;
        if (by == 1) break;
        at[k] = 0;
      }
    }
  }

 private:
  algebra& a_;
  dtype t_;
  vec<loop> free_, summed_;
  vec<const element*> data_;
  vec<fingerprint> weights_;   ///< by term
  vec<std::int64_t> offsets_;  ///< by term and factor
  std::int64_t whole_ = 1;     ///< number of terms before shrinking
  bool weighted_ = false;

  constexpr void unroll() {
    weights_.assign(1, {1, 1});
    offsets_.assign(data_.size(), 0);
    for (const loop& each : summed_) {
      const vec<fingerprint> weights = weights_;
      const vec<std::int64_t> offsets = offsets_;
      weights_.clear();
      offsets_.clear();
      whole_ = saturating_multiply(whole_, each.whole);
      weighted_ = weighted_ || !each.weights.empty();
      for (std::size_t n = 0; n < weights.size(); ++n)
        for (std::int64_t i = 0; i < each.size; ++i) {
          weights_.push_back(each.weights.empty()
                                 ? weights[n]
                                 : field::product(weights[n], each.weights.data()[i]));
          for (std::size_t k = 0; k < data_.size(); ++k)
            offsets_.push_back(offsets[n * data_.size() + k] + i * each.step[k]);
        }
    }
  }
  /// (Products of a zero are skipped: many factors say whether positions fit.)
  constexpr element sum(const std::int64_t* base) {
    const std::size_t factors = data_.size();
    const std::int64_t* offset = offsets_.data();
    const element* const first = factors > 0 ? data_[0] + base[0] : nullptr;
    bool known = true;
    fingerprint total;
    for (const fingerprint& w : weights_) {
      fingerprint x = factors > 0 ? first[offset[0]].of : fingerprint{1, 1};
      known = known && (factors == 0 || first[offset[0]].known);
      for (std::size_t i = 1; i < factors && !(x == fingerprint{}); ++i) {
        const element& y = data_[i][base[i] + offset[i]];
        x = field::product(x, y.of);
        known = known && y.known;
      }
      total = field::sum(total, weighted_ ? field::product(x, w) : x);
      offset += factors;
    }
    if (known) return sum_of_numbers(base);
    return total == fingerprint{} ? small_number(t_, 0) : formula(t_, total);
  }
  constexpr element sum_of_numbers(const std::int64_t* base) {
    element total = small_number(t_, 0), one;
    bool equal = true;
    for (std::size_t n = 0; n < weights_.size(); ++n) {
      element x = small_number(t_, 1);
      for (std::size_t i = 0; i < data_.size(); ++i)
        x = a_.product(t_, x, data_[i][base[i] + offsets_[n * data_.size() + i]]);
      if (n == 0) one = x;
      equal = equal && x == one;
      if (weighted_) x = a_.product(t_, x, formula(t_, weights_[n]));
      total = a_.sum(t_, total, x);
    }
    if (!weighted_ || !equal || !one.known || whole_ >= std::int64_t{1} << 53) return total;
    return a_.product(t_, one,
                      is_floating(t_) ? real(static_cast<double>(whole_)) : integer(t_, whole_));
  }
};

}  // namespace partita::prove_detail
