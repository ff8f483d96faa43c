/// Dropout.
#pragma once

#include <partita/dsl/nn/check.hpp>
#include <partita/dsl/ops.hpp>

namespace partita::nn {

/// Sets elements of x to 0 with probability `rate`, and multiplies the others by 1 / (1 - rate).
///
/// Errors    S122 the rate is not in [0, 1), S123 the key is not a rank-0 tensor of i64
/// Source    Srivastava et al., JMLR 15, 2014
template <Tensor X, Tensor Key>
constexpr auto dropout(const X& x, const Key& key, double rate) {
  const detail::in_scope here("dropout", x);
  if constexpr (!X::is_valid) {
    return x;
  } else {
    const bool in_range = rate >= 0 && rate < 1;
    if (x.context() != nullptr && !in_range) {
      text number;
      print_number(number, rate);
      x.context()->p.error.record("S122", "dropout: rate ", number, " is not in [0, 1)");
    }
    const double kept = in_range ? 1 - rate : 1;
    return select(bernoulli(key, kept, x), x * (1 / kept), 0);
  }
}

}  // namespace partita::nn
