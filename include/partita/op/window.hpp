/// Sliding windows, as used by reduce_window, select_and_scatter and convolution.
#pragma once

#include <utility>

#include <partita/ir/program.hpp>

namespace partita {

/// One dimension of a sliding window. Tap k of the window at position o covers element i if
///
///     o * stride + k * dilation - low = i * base_dilation
///
/// (k is counted from the end if reversed). Positions of the dilated and padded dimension without
/// an element are skipped. Negative padding removes elements.
struct window_dim {
  std::int64_t size = 1, stride = 1;
  std::int64_t base_dilation = 1;  ///< of the operand: elements lie this far apart
  std::int64_t dilation = 1;       ///< of the operand: distance between elements
  std::int64_t low = 0, high = 0;  ///< padding
  bool reversed = false;           ///< only convolution has such windows

  /// Length of n elements at distance `step`, at most max_elements + 1.
  static constexpr std::int64_t span(std::int64_t n, std::int64_t step) {
    if (n <= 0) return 0;
    const std::int64_t length = saturating_multiply(n - 1, step);
    return length < max_elements ? length + 1 : max_elements + 1;
  }
  /// True if the dilated dimension and the dilated window have at most max_elements positions. Then
  /// no computation with these numbers overflows.
  constexpr bool fits(std::int64_t n) const {
    const checked base = checked(n > 0 ? n - 1 : 0) * base_dilation,
                  taps = checked(size > 0 ? size - 1 : 0) * dilation;
    return base.value_or(saturated) < max_elements && taps.value_or(saturated) < max_elements;
  }
  /// True if each window is exactly one element, in order.
  constexpr bool trivial() const {
    return size == 1 && stride == 1 && base_dilation == 1 && low == 0 && high == 0;
  }
  /// Returns the number of windows over a dimension of n elements; `dyn` for `dyn`.
  constexpr std::int64_t positions(std::int64_t n) const {
    if (n == dyn) return dyn;
    const std::int64_t padded = span(n, base_dilation) + low + high, window = span(size, dilation);
    return padded <= 0 || window > padded ? 0 : (padded - window) / stride + 1;
  }
  /// Returns the high padding with which n elements have m positions.
  constexpr std::int64_t high_for(std::int64_t n, std::int64_t m) const {
    return (m - 1) * stride + span(size, dilation) - low - span(n, base_dilation);
  }
  /// Returns the element under tap k of the window at position o, or -1.
  constexpr std::int64_t element(std::int64_t o, std::int64_t k, std::int64_t n) const {
    std::int64_t i = o * stride + k * dilation - low;
    if (i < 0) return -1;
    if (base_dilation > 1) {
      if (i % base_dilation != 0) return -1;
      i /= base_dilation;
    }
    return i < n ? i : -1;
  }
  /// Returns the number of pairs of a position and a tap that cover an element, at most
  /// `saturated`. If counting takes more than 2^22 steps (positions and taps, or dilations, are
  /// that large), padding is counted too.
  constexpr std::int64_t pairs(std::int64_t n) const {
    // Iterates over the shorter of the two; along the other one, matches are `period` apart.
    std::int64_t count = positions(n), a = stride, other = size, b = dilation, sum = 0;
    if (count > other) {
      std::swap(count, other);
      std::swap(a, b);
    }
    const std::int64_t length = span(n, base_dilation);
    const std::int64_t period = base_dilation / greatest_common_divisor(base_dilation, b);
    if (saturating_multiply(count, period) > std::int64_t{1} << 22)
      return saturating_multiply(count, (other - 1) / period + 1);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = a * i - low;
      if (at >= length) break;
      std::int64_t first = at < 0 ? (-at + b - 1) / b : 0;
      const std::int64_t reached = (length - 1 - at) / b;
      const std::int64_t last = reached < other - 1 ? reached : other - 1;
      const std::int64_t stop = first + period;
      while (first < stop && (at + b * first) % base_dilation != 0) ++first;
      if (first < stop && first <= last) sum = saturating_add(sum, (last - first) / period + 1);
    }
    return sum;
  }
  /// Returns the transposed window, which maps m positions back to n elements. Element i receives
  /// through tap size-1-k the value of position o, for all (o, k) that cover i.
  constexpr window_dim transposed(std::int64_t n, std::int64_t m) const {
    window_dim t = *this;
    t.stride = base_dilation;
    t.base_dilation = stride;
    t.low = span(size, dilation) - 1 - low;
    const std::int64_t needed = n == 0 ? 0 : span(n, base_dilation) + span(size, dilation) - 1;
    t.high = needed - span(m, stride) - t.low;
    return t;
  }
  /// True if the m positions over n elements can be sharded: both advance at the same rate, or the
  /// elements are not dilated.
  constexpr bool cuts(std::int64_t n, std::int64_t m) const {
    return n > 0 && m > 0 && (base_dilation == 1 || m * stride == n * base_dilation);
  }
  /// Finds the elements that each shard of the positions needs, and the local window over them.
  /// Returns false if a shard needs no elements, or if dilated elements cannot be divided into the
  /// same number of shards.
  constexpr bool cut(std::int64_t n, std::int64_t m, std::int64_t pieces, halo_range& needed,
                     window_dim& local) const {
    if (base_dilation != 1 && n % pieces != 0) return false;
    const std::int64_t positions_each = m / pieces;
    const std::int64_t reach = (positions_each - 1) * stride + span(size, dilation);
    needed.step = base_dilation == 1 ? positions_each * stride : n / pieces;
    needed.first = -floor_of(low, base_dilation);
    needed.length = floor_of(reach - 1 - low, base_dilation) - needed.first + 1;
    local = *this;
    local.low = low + needed.first * base_dilation;
    local.high = local.high_for(needed.length, positions_each);
    return needed.length > 0;
  }
  static constexpr std::int64_t floor_of(std::int64_t a, std::int64_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
  }
  /// Exchanges taps and positions: returns a window of m taps whose `size` positions are the taps
  /// of this one. Position k sees through tap o the element under tap k of this window at o.
  constexpr window_dim exchanged(std::int64_t n, std::int64_t m) const {
    window_dim e = *this;
    e.size = m;
    e.stride = dilation;
    e.dilation = stride;
    e.high = span(size, dilation) + span(m, stride) - 1 - span(n, base_dilation) - low;
    e.reversed = false;
    return e;
  }
};

namespace op {

/// The windows of an op's operand. They are stored as lists with one number per dimension: sizes,
/// strides, base dilations, window dilations, low padding, high padding.
struct windows {
  static constexpr int lists = 6;
  window_dim at[max_rank];
  int rank = 0;

  constexpr windows() = default;
  /// Reads the stored lists. If `sizes` is false, the caller sets the sizes.
  constexpr windows(const std::int64_t* a, int n, bool sizes = true) : rank(n) {
    for (int d = 0; d < n; ++d) {
      if (sizes) at[d].size = a[d];
      const std::int64_t* rest = a + (sizes ? n : 0) + d;
      at[d].stride = rest[0];
      at[d].base_dilation = rest[n];
      at[d].dilation = rest[2 * n];
      at[d].low = rest[3 * n];
      at[d].high = rest[4 * n];
    }
  }
  constexpr span<const window_dim> all() const { return {at, static_cast<std::size_t>(rank)}; }
};

/// Appends the windows as lists.
constexpr void store_windows(vec<std::int64_t>& attrs, span<const window_dim> w,
                             bool sizes = true) {
  if (sizes)
    for (const auto& d : w) attrs.push_back(d.size);
  for (const auto& d : w) attrs.push_back(d.stride);
  for (const auto& d : w) attrs.push_back(d.base_dilation);
  for (const auto& d : w) attrs.push_back(d.dilation);
  for (const auto& d : w) attrs.push_back(d.low);
  for (const auto& d : w) attrs.push_back(d.high);
}

/// Replaces the window of one dimension in the stored lists.
constexpr void replace_window(std::int64_t* a, int n, int dim, const window_dim& w,
                              bool sizes = true) {
  std::int64_t* at = a + dim;
  if (sizes) {
    *at = w.size;
    at += n;
  }
  for (std::int64_t each : {w.stride, w.base_dilation, w.dilation, w.low, w.high}) {
    *at = each;
    at += n;
  }
}

/// Returns gcd(n, m) for n elements and m positions: both can be divided into a number of shards
/// that divides it. Returns 0 if either is unknown or 0.
constexpr std::int64_t common_extent(std::int64_t n, std::int64_t m) {
  return n > 0 && m > 0 ? greatest_common_divisor(n, m) : 0;
}

/// Adds the factor of windows that slide over dimension `d` of the first operand: plain if each
/// window is one element, otherwise with a halo. Returns false if the dimension cannot be sharded.
constexpr bool window_factor(tile_map_context& c, const window_dim& w, int d) {
  const std::int64_t n = c.operands[0].shape[d], m = c.result.shape[d];
  if (w.trivial())
    c.tile(m, d).operand(0, d);
  else if (const auto both = common_extent(n, m); both > 0 && w.cuts(n, m))
    c.tile(both, d).operand(0, d).halo();
  else
    return false;
  return true;
}

/// Declares the lists for printing and parsing.
template <class Fields>
constexpr void window_attributes(Fields& f, int rank) {
  f.list("window", rank);
  f.list_or("strides", rank, 1);
  f.list_or("base_dilation", rank, 1);
  f.list_or("window_dilation", rank, 1);
  f.list_or("low", rank, 0);
  f.list_or("high", rank, 0);
}

/// Limit of window numbers, below 2^31 so that no product of two overflows. Numbers combined with
/// extents are checked separately (window_dim::fits).
inline constexpr std::int64_t window_limit = 2147483647;

/// True if the stored lists are in range; includes the sizes if `sizes`.
///
/// Errors    S151 a number out of range
constexpr bool check_windows(infer_context& c, std::string_view name, const std::int64_t* a, int n,
                             bool sizes = true) {
  constexpr std::string_view labels[] = {"window size",     "stride",      "base dilation",
                                         "window dilation", "low padding", "high padding"};
  for (int list = sizes ? 0 : 1; list < windows::lists; ++list)
    for (int d = 0; d < n; ++d, ++a) {
      const std::int64_t least = list < 4 ? 1 : -window_limit;
      if (*a >= least && *a <= window_limit) continue;
      c.fail("S151", name, ": ", labels[list], " of dimension ", d, " is ", *a,
             "; it must be between ", least, " and ", window_limit);
      return false;
    }
  return true;
}

/// True if the window has at most 2^59 - 1 positions (see window_dim::fits).
///
/// Errors    S118 too many positions
constexpr bool window_fits(infer_context& c, std::string_view name, const window_dim& w, int d,
                           std::int64_t n) {
  if (w.fits(n)) return true;
  c.fail("S118", name, ": dimension ", d, " of ", c.operands[0], " with base dilation ",
         w.base_dilation, ", or its window of size ", w.size, " with dilation ", w.dilation,
         ", has more than 2^59 - 1 positions");
  return false;
}

/// Checks the number of attributes, `first` and then the lists, for an op whose windows slide over
/// all dimensions of its first operand. Returns the shape of the positions, which is empty on
/// errors.
///
/// Errors    S118 too many positions, S150 number of attributes, S151 a number out of range
constexpr shape window_positions(infer_context& c, std::string_view name, int first) {
  const tensor_type& x = c.operands[0];
  const int n = x.shape.rank, needed = first + windows::lists * n;
  shape result;
  if (static_cast<int>(c.attrs.size()) != needed) {
    c.fail("S150", name, ": ", c.attrs.size(), " attributes for ", x, "; ", needed, " are needed");
    return result;
  }
  const std::int64_t* lists = c.attrs.data() + first;
  if (!check_windows(c, name, lists, n)) return result;
  const windows w(lists, n);
  for (int d = 0; d < n; ++d) {
    if (!window_fits(c, name, w.at[d], d, x.shape[d])) return {};
    result.push_back(w.at[d].positions(x.shape[d]));
  }
  return result;
}

/// Counts the comparisons or sums over the windows.
constexpr std::int64_t window_flops(const cost_context& c, int first) {
  const shape& from = c.operands[0].shape;
  const windows w(c.attrs.data() + first, from.rank);
  std::int64_t n = 1;
  for (int d = 0; d < from.rank; ++d) n = saturating_multiply(n, w.at[d].pairs(from[d]));
  return n;
}

}  // namespace op

}  // namespace partita
