/// Building blocks of neural networks, as plain functions of tensors.
#pragma once

#include <partita/dsl/ops.hpp>

namespace partita::nn {

/// exp(x) / sum(exp(x)) along the last dimension, shifted by the maximum.
template <Tensor X>
constexpr auto softmax(const X& x) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    constexpr int last = X::rank - 1;
    const auto shifted = exp(x - keep_last(stop_gradient(reduce_max<last>(x))));
    return shifted / keep_last(sum<last>(shifted));
  }
}

/// Logarithm of the softmax along the last dimension.
template <Tensor X>
constexpr auto log_softmax(const X& x) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    constexpr int last = X::rank - 1;
    const auto shifted = x - keep_last(stop_gradient(reduce_max<last>(x)));
    return shifted - keep_last(log(sum<last>(exp(shifted))));
  }
}

/// (x - mean) / sqrt(variance + epsilon) * scale + bias along the last dimension.
///
/// Shapes    x (..., d), scale (d), bias (d) -> (..., d)
template <Tensor X, Tensor Scale, Tensor Bias>
constexpr auto layer_norm(const X& x, const Scale& scale, const Bias& bias, double epsilon = 1e-5) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    constexpr int last = X::rank - 1;
    const auto centered = x - keep_last(mean<last>(x));
    const auto variance = mean<last>(centered * centered);
    return centered * keep_last(rsqrt(variance + epsilon)) * scale + bias;
  }
}

/// GELU by the tanh approximation (Hendrycks and Gimpel, arXiv:1606.08415).
template <Tensor X>
constexpr auto gelu(const X& x) {
  return x * 0.5 * (tanh((x + x * x * x * 0.044715) * 0.7978845608028654) + 1);
}

/// GELU with the error function.
template <Tensor X>
constexpr auto gelu_erf(const X& x) {
  return x * 0.5 * (erf(x * 0.7071067811865476) + 1);
}

/// Mean over all positions of -log softmax(logits)[target].
///
/// Shapes    logits (..., classes), targets (...) of an integer type -> ()
template <Tensor Logits, Tensor Targets>
constexpr auto cross_entropy(const Logits& logits, const Targets& targets) {
  if constexpr (!Logits::is_valid || !Targets::is_valid) {
    return invalid_tensor{};
  } else {
    constexpr int last = Logits::rank - 1;
    using index = typename Targets::element;
    const auto classes = iota<index, 0>(logits, dim<last>(logits));
    const auto chosen = equal(keep_last(targets), classes);
    const auto picked = select(chosen, log_softmax(logits), 0);
    return -(sum(picked) * (1.0 / static_cast<double>(targets.shape().elements())));
  }
}

}  // namespace partita::nn
