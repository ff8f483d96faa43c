/// Convolutions and pooling over any number of spatial dimensions, channels last.
#pragma once

#include <utility>

#include <partita/dsl/convolution.hpp>
#include <partita/dsl/nn/check.hpp>

namespace partita::nn {

/// Convolves and adds a bias per output channel:
///
///     nn::conv<conv_options{.strides = {2, 2}, .padding = same_padding}>(x, weights, bias)
///
/// Shapes    x (n, spatial..., c), weights (spatial..., c / groups, o), bias (o) -> (n,
///           positions..., o); with channels_first x (n, c, spatial...), weights (o, c / groups,
///           spatial...) -> (n, o, positions...)
/// Errors    as partita::conv; S103 the bias does not broadcast
template <conv_options Options = conv_options{}, Tensor X, Tensor W, Tensor Bias>
constexpr auto conv(const X& x, const W& weights, const Bias& bias) {
  const detail::in_scope here("conv", x);
  const auto y = partita::conv<Options>(x, weights);
  if constexpr (!Options.channels_first || !decltype(y)::is_valid || !Bias::is_valid) {
    return y + bias;
  } else {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return y + reshape(bias, dim<0>(bias), detail::one<I>{}...);
    }
    (std::make_integer_sequence<int, X::rank - 2>{});
  }
}

/// Options of max_pool and avg_pool, per spatial dimension. Omitted strides and dilations are 1.
struct pool_options {
  std::int64_t size[max_rank] = {}, strides[max_rank] = {}, dilation[max_rank] = {};
  partita::padding padding = {};
  bool count_padding = false;  ///< avg_pool: padding counts as zeros; otherwise it is ignored
};

namespace detail {

/// Returns the number of leading entries that are set: one more than the last nonzero one.
constexpr int given(const std::int64_t (&list)[max_rank]) {
  int n = 0;
  for (int d = 0; d < max_rank; ++d)
    if (list[d] != 0) n = d + 1;
  return n;
}
/// Checks that the options match the spatial dimensions.
///
/// Errors    S194
template <pool_options Options>
constexpr auto check_pool = [](failure& error, const tensor_type* t) {
  const int spatial = t[0].shape.rank - 2, sizes = given(Options.size);
  int others = 0;
  for (const auto* list :
       {&Options.strides, &Options.dilation, &Options.padding.low, &Options.padding.high})
    others = others < given(*list) ? given(*list) : others;
  if (sizes != spatial || others > spatial)
    error.record("S194", "pool: ", t[0], ", (n, spatial..., c), has ", spatial,
                 " spatial dimensions; the window has ", sizes, ", its other options have ",
                 others);
};
/// Returns the window over (n, spatial..., c).
constexpr window window_of(const pool_options& options) {
  window w;
  w.padding.kind = options.padding.kind;
  for (int d = 0; d + 1 < max_rank; ++d) {
    w.size[d + 1] = options.size[d];
    w.strides[d + 1] = options.strides[d];
    w.dilation[d + 1] = options.dilation[d];
    w.padding.low[d + 1] = options.padding.low[d];
    w.padding.high[d + 1] = options.padding.high[d];
  }
  return w;
}

}  // namespace detail

/// Returns the maximum under each position of a window over the spatial dimensions, in each
/// channel: `max_pool<pool_options{.size = {2, 2}, .strides = {2, 2}}>(x)`. Padding is ignored.
///
/// Shapes    (n, spatial..., c) -> (n, positions..., c)
/// Errors    S194 the options are for another number of dimensions; S151 as reduce_window
template <pool_options Options, Tensor X>
constexpr auto max_pool(const X& x) {
  const detail::in_scope here("max_pool", x);
  return reduce_window<combiner::max, detail::window_of(Options)>(
      detail::checked(detail::check_pool<Options>, x));
}

/// Returns the mean of the elements under each position of a window. It is NaN if there is only
/// padding, unless padding counts.
///
/// Shapes    (n, spatial..., c) -> (n, positions..., c)
/// Errors    S194 the options are for another number of dimensions; S151 as reduce_window
template <pool_options Options, Tensor X>
constexpr auto avg_pool(const X& x) {
  const detail::in_scope here("avg_pool", x);
  constexpr window sliding = detail::window_of(Options);
  const auto whole = detail::checked(detail::check_pool<Options>, x);
  const auto total = reduce_window<combiner::add, sliding>(whole);
  if constexpr (!decltype(total)::is_valid) {
    return total;
  } else if constexpr (Options.count_padding || Options.padding.kind == padding::rule::valid) {
    std::int64_t elements = 1;
    for (auto n : Options.size)
      elements = saturating_multiply(elements, partita::dsl_detail::or_one(n));
    return total * partita::dsl_detail::reciprocal(elements);
  } else {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      const auto ones = broadcast_in_dim<>(partita::dsl_detail::scalar_like(x, 1), extent<1>{},
                                           dim<I + 1>(x)..., extent<1>{});
      return total / reduce_window<combiner::add, sliding>(ones);
    }
    (std::make_integer_sequence<int, X::rank - 2>{});
  }
}

}  // namespace partita::nn
