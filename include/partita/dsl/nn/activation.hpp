/// Activation functions.
///
/// Errors    S104 x is not floating point (all but relu)
#pragma once

#include <partita/dsl/nn/check.hpp>
#include <partita/dsl/ops.hpp>

namespace partita::nn {

/// Returns max(x, 0), with derivative 0 at 0.
template <Tensor X>
constexpr auto relu(const X& x) {
  return maximum(0, x);
}

/// Returns 1 / (1 + exp(-x)).
template <Tensor X>
constexpr auto sigmoid(const X& x) {
  return logistic(x);
}

/// Returns x / (1 + exp(-x)), also called swish.
///
/// Source    Elfwing et al., arXiv:1702.03118
template <Tensor X>
constexpr auto silu(const X& x) {
  const detail::in_scope here("silu", x);
  return x * logistic(x);
}

/// Applies GELU in the tanh approximation.
///
/// Source    Hendrycks and Gimpel, arXiv:1606.08415
template <Tensor X>
constexpr auto gelu(const X& x) {
  const detail::in_scope here("gelu", x);
  return x * 0.5 * (tanh((x + x * x * x * 0.044715) * 0.7978845608028654) + 1);
}

/// Applies GELU with the error function: x times the normal distribution function of x.
///
/// Source    Hendrycks and Gimpel, arXiv:1606.08415
template <Tensor X>
constexpr auto gelu_erf(const X& x) {
  const detail::in_scope here("gelu_erf", x);
  return x * 0.5 * (erf(x * 0.7071067811865476) + 1);
}

/// Returns exp(x) / sum(exp(x)) along the last dimension, shifted by the maximum.
///
/// Shapes    (..., d) -> (..., d)
template <Tensor X>
constexpr auto softmax(const X& x) {
  const detail::in_scope here("softmax", x);
  if constexpr (!X::is_valid) {
    return x;
  } else {
    constexpr int last = X::rank - 1;
    const auto shifted = exp(x - keep_last(stop_gradient(reduce_max<last>(x))));
    return shifted / keep_last(sum<last>(shifted));
  }
}

/// Returns the logarithm of the softmax along the last dimension.
///
/// Shapes    (..., d) -> (..., d)
template <Tensor X>
constexpr auto log_softmax(const X& x) {
  const detail::in_scope here("log_softmax", x);
  if constexpr (!X::is_valid) {
    return x;
  } else {
    constexpr int last = X::rank - 1;
    const auto shifted = x - keep_last(stop_gradient(reduce_max<last>(x)));
    return shifted - keep_last(log(sum<last>(exp(shifted))));
  }
}

/// Returns log(sum(exp(x))) along the last dimension, shifted by the maximum.
///
/// Shapes    (..., d) -> (...)
template <Tensor X>
constexpr auto log_sum_exp(const X& x) {
  const detail::in_scope here("log_sum_exp", x);
  if constexpr (!X::is_valid) {
    return x;
  } else {
    constexpr int last = X::rank - 1;
    const auto greatest = stop_gradient(reduce_max<last>(x));
    return log(sum<last>(exp(x - keep_last(greatest)))) + greatest;
  }
}

}  // namespace partita::nn
