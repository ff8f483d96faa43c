/// Losses: scalars to be minimized.
#pragma once

#include <partita/dsl/nn/activation.hpp>
#include <partita/dsl/nn/check.hpp>

namespace partita::nn {

/// Options of cross_entropy.
struct cross_entropy_options {
  /// Share of the target's probability that is spread over all classes.
  double label_smoothing = 0;
  /// Factor of the mean square of log(sum(exp(logits))), which keeps logits from drifting.
  double z_loss = 0;
};

/// Returns the mean over all positions of -log softmax(logits)[target].
///
/// Shapes    logits (..., classes), targets (...) of an integer type -> ()
/// Errors    S120 targets are not integers, S103 targets and logits differ in extents
/// Source    label smoothing: Szegedy et al., arXiv:1512.00567, section 7; z loss: Chowdhery et
///           al., arXiv:2204.02311, section 5
template <Tensor Logits, Tensor Targets>
constexpr auto cross_entropy(const Logits& logits, const Targets& targets,
                             const cross_entropy_options& options = {}) {
  const detail::in_scope here("cross_entropy", logits);
  constexpr auto check = [](failure& error, const tensor_type* t) {
    if (!is_integer(t[0].element))
      error.record("S120", "cross_entropy: targets ", t[0], " are not integers");
  };
  const auto classes_of = detail::checked(check, targets);
  if constexpr (!Logits::is_valid || !decltype(classes_of)::is_valid) {
    return invalid_tensor{};
  } else {
    constexpr int last = Logits::rank - 1;
    using index = typename Targets::element;
    const auto classes = iota<index, 0>(logits, dim<last>(logits));
    const auto chosen = equal(keep_last(classes_of), classes);
    const auto logarithms = log_softmax(logits);
    const auto picked = select(chosen, logarithms, 0);
    const double share = partita::dsl_detail::reciprocal(targets.shape().elements());
    auto loss = -(sum(picked) * (share * (1 - options.label_smoothing)));
    if (options.label_smoothing != 0)
      loss = loss - sum(logarithms) * (share * options.label_smoothing *
                                       partita::dsl_detail::reciprocal(logits.shape()[last]));
    if (options.z_loss != 0) {
      const auto z = log_sum_exp(logits);
      loss = loss + sum(z * z) * (share * options.z_loss);
    }
    return loss;
  }
}

/// Returns the mean over all elements of -t log(p) - (1 - t) log(1 - p), where p = 1 / (1 +
/// exp(-logit)) and t in [0, 1] is the target.
///
/// Shapes    logits and targets of one shape -> ()
template <Tensor Logits, Tensor Targets>
constexpr auto binary_cross_entropy(const Logits& logits, const Targets& targets) {
  const detail::in_scope here("binary_cross_entropy", logits);
  return mean(maximum(logits, 0) - logits * targets + log1p(exp(-abs(logits))));
}

/// Returns the mean over all elements of (x - y)^2.
///
/// Shapes    x and y of one shape -> ()
template <Tensor X, Tensor Y>
constexpr auto mean_squared_error(const X& x, const Y& y) {
  const detail::in_scope here("mean_squared_error", x);
  const auto difference = x - y;
  return mean(difference * difference);
}

}  // namespace partita::nn
