/// Convolutions and other sliding windows.
#pragma once

#include <initializer_list>

#include <partita/dsl/apply.hpp>

namespace partita {

/// Padding of dimensions: none (valid), enough for ceil(extent / stride) windows (same), or given
/// numbers.
struct padding {
  enum class rule : std::uint8_t { valid, same, given };
  rule kind = rule::valid;
  std::int64_t low[max_rank] = {}, high[max_rank] = {};
};
/// No padding.
inline constexpr padding valid_padding{};
/// Enough padding for ceil(extent / stride) windows, split evenly; an odd one goes to the end.
inline constexpr padding same_padding{padding::rule::same, {}, {}};
/// Returns the padding `explicit_padding({1, 1}, {1, 1})`: low, then high padding of each
/// dimension. Negative numbers remove elements.
constexpr padding explicit_padding(std::initializer_list<std::int64_t> low,
                                   std::initializer_list<std::int64_t> high) {
  padding p{padding::rule::given, {}, {}};
  int d = 0;
  for (auto n : low)
    if (d < max_rank) p.low[d++] = n;
  d = 0;
  for (auto n : high)
    if (d < max_rank) p.high[d++] = n;
  return p;
}

/// A window for reduce_window: `window{.size = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}}`, with one
/// number per dimension of the operand. Omitted numbers are 1.
struct window {
  std::int64_t size[max_rank] = {}, strides[max_rank] = {};
  std::int64_t base_dilation[max_rank] = {}, dilation[max_rank] = {};
  partita::padding padding = {};
};

/// Options of conv, per spatial dimension. Omitted numbers are 1.
struct conv_options {
  std::int64_t strides[max_rank] = {}, dilation[max_rank] = {};  ///< of the window
  std::int64_t input_dilation[max_rank] = {};  ///< above 1 for a transposed convolution
  partita::padding padding = {};
  std::int64_t groups = 1;      ///< number of feature groups
  bool channels_first = false;  ///< (n, c, spatial...), (o, i, spatial...) -> (n, o, positions...)
};

namespace dsl_detail {

constexpr std::int64_t or_one(std::int64_t n) { return n == 0 ? 1 : n; }

/// Sets the padding of a window over an extent. (For a dynamic extent and a stride other than 1,
/// `same` yields a dynamic number of positions, so the padding does not matter.)
constexpr void put_padding(window_dim& w, const padding& p, int d, std::int64_t extent) {
  if (p.kind == padding::rule::given) {
    w.low = p.low[d];
    w.high = p.high[d];
  } else if (p.kind == padding::rule::same && w.stride > 0) {
    const std::int64_t n = window_dim::span(extent == dyn ? 1 : extent, w.base_dilation);
    const std::int64_t positions = (n + w.stride - 1) / w.stride;
    const std::int64_t total =
        (positions - 1) * w.stride + window_dim::span(w.size, w.dilation) - n;
    w.low = total > 0 ? total / 2 : 0;
    w.high = total > 0 ? total - w.low : 0;
  }
}

/// True if there are numbers for dimensions that do not exist.
///
/// Errors    S196
template <class... Lists>
constexpr bool beyond(builder& b, std::string_view name, int dimensions, const Lists&... lists) {
  for (int d = dimensions; d < max_rank; ++d)
    if (((lists[d] != 0) || ...)) {
      b.p.error.record("S196", name, ": an option for dimension ", d, "; there are ", dimensions,
                       name == "conv" ? " spatial dimensions" : " dimensions");
      return true;
    }
  return false;
}

/// Returns the windows over a shape, one per dimension; an empty list on errors.
constexpr vec<window_dim> windows_over(builder& b, std::string_view name, const shape& s,
                                       const window& options) {
  vec<window_dim> all;
  if (b.failed() || beyond(b, name, s.rank, options.size, options.strides, options.base_dilation,
                           options.dilation, options.padding.low, options.padding.high))
    return all;
  for (int d = 0; d < s.rank; ++d) {
    window_dim w;
    w.size = or_one(options.size[d]);
    w.stride = or_one(options.strides[d]);
    w.base_dilation = or_one(options.base_dilation[d]);
    w.dilation = or_one(options.dilation[d]);
    put_padding(w, options.padding, d, s[d]);
    all.push_back(w);
  }
  return all;
}

constexpr value_id emit_conv(builder& b, value_id lhs, value_id rhs, const conv_options& options) {
  if (b.failed() || lhs < 0 || rhs < 0) return -1;
  const shape ls = b.type(lhs).shape, rs = b.type(rhs).shape;
  const int rank = ls.rank, spatial = rank - 2;
  if (rs.rank != rank || spatial < 0) {
    b.p.error.record("S156", "conv: ", b.type(lhs), " and ", b.type(rhs), " are not ",
                     options.channels_first ? "(n, c, spatial...) and (o, i, spatial...)"
                                            : "(n, spatial..., c) and (spatial..., i, o)");
    return -1;
  }
  if (beyond(b, "conv", spatial, options.strides, options.dilation, options.input_dilation,
             options.padding.low, options.padding.high))
    return -1;
  const bool first = options.channels_first;
  std::int64_t data[max_rank] = {0, first ? 1 : rank - 1};
  std::int64_t weights[max_rank] = {first ? 1 : spatial, first ? 0 : spatial + 1};
  window_dim w[max_rank];
  for (int d = 0; d < spatial; ++d) {
    data[2 + d] = first ? 2 + d : 1 + d;
    weights[2 + d] = first ? 2 + d : d;
    w[d].size = rs[static_cast<int>(weights[2 + d])];
    w[d].stride = or_one(options.strides[d]);
    w[d].dilation = or_one(options.dilation[d]);
    w[d].base_dilation = or_one(options.input_dilation[d]);
    put_padding(w[d], options.padding, d, ls[static_cast<int>(data[2 + d])]);
  }
  const auto n = static_cast<std::size_t>(rank);
  return ops::convolution(b, lhs, rhs,
                          {{data, n}, {weights, n}, {data, n}, {w, n - 2}, options.groups, 1});
}

}  // namespace dsl_detail

/// Convolves over any number of spatial dimensions:
///
///     conv<conv_options{.strides = {2, 2}, .padding = same_padding}>(x, weights)
///
/// The window is not reversed.
///
/// Shapes    (n, spatial..., c), (spatial..., c / groups, o) -> (n, positions..., o); for other
///           layouts see conv_options
/// Errors    S196 options for more dimensions; S102, S104, S151, S156, S157, S158 (see
///           op/convolution.hpp)
template <conv_options Options = conv_options{}, Tensor X, Tensor W>
constexpr auto conv(const X& x, const W& weights) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return dsl_detail::emit_conv(b, v[0], v[1], Options);
      },
      x, weights);
}

/// Reduces the elements under each position of a window that slides over all dimensions:
///
///     reduce_window<combiner::max, window{.size = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}}>(x)
///
/// Errors    S196 options for more dimensions; S104, S151, S152 (see op/reduce_window.hpp)
template <combiner Combine, window Window, Tensor X>
constexpr auto reduce_window(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        const vec<window_dim> w =
            dsl_detail::windows_over(b, "reduce_window", b.type(v[0]).shape, Window);
        return ops::reduce_window(b, v[0], Combine, {w.data(), w.size()});
      },
      x);
}

/// Adds each element of `source` at the position of the maximum (ge) or minimum (le) element of
/// `operand` in its window. Other positions are 0.
///
/// Shapes    operand (n...), source (positions of the windows...) -> (n...)
/// Errors    S102, S104, S151, S153, S154 (see op/select_and_scatter.hpp)
template <ops::direction Select, window Window, Tensor X, Tensor S>
constexpr auto select_and_scatter(const X& operand, const S& source) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        const vec<window_dim> w =
            dsl_detail::windows_over(b, "select_and_scatter", b.type(v[0]).shape, Window);
        return ops::select_and_scatter(b, v[0], v[1], Select, {w.data(), w.size()});
      },
      operand, source);
}

}  // namespace partita
