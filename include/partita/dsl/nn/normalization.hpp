/// Normalizations: layer_norm, rms_norm, group_norm.
///
/// Mean and variance are computed in the element type of x.
#pragma once

#include <utility>

#include <partita/dsl/nn/check.hpp>

namespace partita::nn {

/// Returns (x - mean) / sqrt(variance + epsilon) * scale + bias along the last dimension.
///
/// Shapes    x (..., d), scale (d), bias (d) -> (..., d)
/// Errors    S103 scale or bias does not broadcast
/// Source    Ba et al., arXiv:1607.06450
template <Tensor X, Tensor Scale, Tensor Bias>
constexpr auto layer_norm(const X& x, const Scale& scale, const Bias& bias, double epsilon = 1e-5) {
  const detail::in_scope here("layer_norm", x);
  if constexpr (!X::is_valid) {
    return x;
  } else {
    constexpr int last = X::rank - 1;
    const auto centered = x - keep_last(mean<last>(x));
    const auto variance = mean<last>(centered * centered);
    return centered * keep_last(rsqrt(variance + epsilon)) * scale + bias;
  }
}

/// Returns x / sqrt(mean(x^2) + epsilon) * scale along the last dimension.
///
/// Shapes    x (..., d), scale (d) -> (..., d)
/// Errors    S103 the scale does not broadcast
/// Source    Zhang and Sennrich, arXiv:1910.07467
template <Tensor X, Tensor Scale>
constexpr auto rms_norm(const X& x, const Scale& scale, double epsilon = 1e-6) {
  const detail::in_scope here("rms_norm", x);
  if constexpr (!X::is_valid) {
    return x;
  } else {
    return x * keep_last(rsqrt(mean<X::rank - 1>(x * x) + epsilon)) * scale;
  }
}

namespace detail {
/// Checks that the groups divide the channels.
///
/// Errors    S192
template <std::int64_t Groups>
constexpr auto check_groups = [](failure& error, const tensor_type* t) {
  const shape& s = t[0].shape;
  if (s.rank < 2)
    error.record("S192", "group_norm: ", t[0], " is not (n, spatial..., c)");
  else if (Groups < 1 || !divides(Groups, s[s.rank - 1]))
    error.record("S192", "group_norm: ", Groups, " groups do not divide dimension ", s.rank - 1,
                 " of ", t[0], ", which has size ", s[s.rank - 1]);
};

/// Returns means over all dimensions of (n, spatial..., groups, c) but n and groups, as (n, 1...,
/// groups, 1), which broadcasts.
template <Tensor X>
constexpr auto mean_of_groups(const X& x) {
  constexpr int spatial = X::rank - 3;
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return reshape(mean<(I + 1)..., X::rank - 1>(x), dim<0>(x), one<I>{}..., dim<X::rank - 2>(x),
                   extent<1>{});
  }
  (std::make_integer_sequence<int, spatial>{});
}
}  // namespace detail

/// Returns (x - mean) / sqrt(variance + epsilon) * scale + bias, with mean and variance over the
/// positions and the channels of each group: `group_norm<32>(x, scale, bias)`. With one group per
/// channel, it is an instance norm.
///
/// Shapes    x (n, spatial..., c), scale (c), bias (c) -> (n, spatial..., c); Groups divides c
/// Errors    S192 the groups do not divide the channels, S103 scale or bias does not broadcast
/// Source    Wu and He, arXiv:1803.08494
template <std::int64_t Groups, Tensor X, Tensor Scale, Tensor Bias>
constexpr auto group_norm(const X& x, const Scale& scale, const Bias& bias, double epsilon = 1e-5) {
  const detail::in_scope here("group_norm", x);
  const auto whole = detail::checked(detail::check_groups<Groups>, x);
  if constexpr (!decltype(whole)::is_valid) {
    return whole;
  } else {
    constexpr int last = X::rank - 1;
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      const auto groups =
          reshape(whole, dim<I>(whole)..., extent<Groups>{},
                  detail::quotient(dim<last>(whole), extent<Groups>{}));  // (n, s..., g, c / g)
      const auto centered = groups - detail::mean_of_groups(groups);
      const auto variance = detail::mean_of_groups(centered * centered);
      const auto normal = centered * rsqrt(variance + epsilon);
      return reshape(normal, dim<I>(whole)..., dim<last>(whole)) * scale + bias;
    }
    (std::make_integer_sequence<int, last>{});
  }
}

}  // namespace partita::nn
