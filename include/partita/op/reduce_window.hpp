/// reduce_window: reduces the elements under each position of a sliding window.
#pragma once

#include <partita/op/reduce.hpp>

namespace partita::op {

/// Slides windows over all dimensions (see window.hpp). A window of size 1 with default settings
/// leaves its dimension unchanged. Positions without an element (padding, holes) count as the
/// identity of the combiner (see reduce.hpp).
///
/// Differs from StableHLO: a combiner instead of a region, and no initial value; combine the result
/// with it.
///
/// Shapes    (n...) -> (positions of the windows...)
/// Attributes: the combiner as in reduce, then lists with one number per dimension: window sizes,
///           strides, base dilations, window dilations, low padding, high padding
/// Tile map  ([i, j~, k~, l], window=[1, 3, 3, 1], same padding) -> ([i, j, k, l])
/// Cost      one flop per element of each window, without padding
/// Errors    S104 element type not supported, S150 count of attributes, S151 a number out of range,
///           S152 not a combiner
struct reduce_window {
  static constexpr std::string_view name = "reduce_window";
  static constexpr fusion_kind fusion = fusion_kind::last;
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    if (!check_combiner(c, name, combiner_names, c.attrs.empty() ? 0 : c.attrs[0])) return;
    c.result = {c.operands[0].element, window_positions(c, name, 1)};
  }
  static constexpr void tile_map(tile_map_context& c) {
    const windows w(c.attrs + 1, c.result.shape.rank);
    for (int d = 0; d < w.rank; ++d) window_factor(c, w.at[d], d);
  }
  static constexpr void halo(halo_context& c) {
    const int rank = c.result.shape.rank, d = c.result_dim;
    const windows w(c.attrs.data() + 1, rank);
    window_dim local;
    c.possible = w.at[d].cut(c.operand_extent(0), c.result.shape[d], c.pieces, c.ranges[0], local);
    c.ranges[0].fill = static_cast<combiner>(c.attrs[0]);
    replace_window(c.attrs.data() + 1, rank, d, local);
  }
  static constexpr void stretch(halo_context& c) {
    const int rank = c.result.shape.rank, d = c.result_dim;
    window_dim w = windows(c.attrs.data() + 1, rank).at[d];
    w.high = w.high_for(c.operand_extent(0), c.result.shape[d]);
    c.apart = w.base_dilation == 1;
    replace_window(c.attrs.data() + 1, rank, d, w);
    c.ranges[0].fill = static_cast<combiner>(c.attrs[0]);
  }
  /// add: slides the transposed window over the cotangent. max, min: sends it to the first extreme
  /// element of each window. multiply: differentiates the product one tap at a time.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const value_id x = b.p.operand(c.op, 0);
    const shape from = b.type(x).shape, to = b.type(c.cotangent).shape;
    const auto attrs = b.p.attrs(c.op);
    const auto combine = static_cast<combiner>(attrs[0]);
    const windows w(attrs.data() + 1, from.rank);
    if (from.elements() == 0 || to.elements() == 0) return;  // no cotangent
    if (combine == combiner::add)
      c.operands[0] = back(b, c.cotangent, w, from, to);
    else if (combine == combiner::multiply)
      c.operands[0] = of_products(b, x, c.cotangent, w, from, to);
    else
      c.operands[0] = ops::select_and_scatter(
          b, x, c.cotangent, combine == combiner::max ? ops::direction::ge : ops::direction::le,
          w.all());
  }
  static constexpr std::int64_t flops(const cost_context& c) { return window_flops(c, 1); }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.word("", combiner_names);
    window_attributes(f, f.operands[0].shape.rank);
  }

 private:
  static constexpr value_id back(builder& b, value_id cotangent, const windows& w,
                                 const shape& from, const shape& to) {
    windows t = w;
    for (int d = 0; d < w.rank; ++d) t.at[d] = w.at[d].transposed(from[d], to[d]);
    return ops::reduce_window(b, cotangent, combiner::add, t.all());
  }
  /// Differentiates products: each tap is a window of size 1, which yields the elements that it
  /// covers, or 1 in padding.
  static constexpr value_id of_products(builder& b, value_id x, value_id cotangent,
                                        const windows& w, const shape& from, const shape& to) {
    vec<windows> taps;
    taps.push_back(w);
    for (int d = 0; d < w.rank; ++d) {
      vec<windows> more;
      for (const auto& tap : taps)
        for (std::int64_t k = 0; k < w.at[d].size; ++k) {
          windows one = tap;
          one.at[d].size = 1;
          one.at[d].low -= k * w.at[d].dilation;
          one.at[d].high -= (w.at[d].size - 1 - k) * w.at[d].dilation;
          more.push_back(one);
        }
      taps = more;
    }
    if (taps.size() == 1) return back(b, cotangent, w, from, to);
    vec<value_id> parts, after;  // the taps; the product of the taps after each
    for (const auto& tap : taps)
      parts.push_back(ops::reduce_window(b, x, combiner::multiply, tap.all()));
    after.assign(parts.size(), -1);
    for (std::size_t k = parts.size() - 1; k > 0; --k)
      after[k - 1] = k + 1 == parts.size() ? parts[k] : ops::multiply(b, parts[k], after[k]);
    value_id before = cotangent, sum = -1;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const value_id g = after[k] < 0 ? before : ops::multiply(b, before, after[k]);
      const value_id part = back(b, g, taps[k], from, to);
      sum = sum < 0 ? part : ops::add(b, sum, part);
      before = ops::multiply(b, before, parts[k]);
    }
    return sum;
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::reduce_window)
}  // namespace partita

namespace partita::ops {

/// Emits a reduce_window. `w` has one entry per dimension.
constexpr value_id reduce_window(builder& b, value_id x, combiner combine,
                                 span<const window_dim> w) {
  vec<std::int64_t> attrs;
  attrs.push_back(static_cast<std::int64_t>(combine));
  op::store_windows(attrs, w);
  const value_id operands[] = {x};
  return b.emit(def<op::reduce_window>, operands, {attrs.data(), attrs.size()});
}

}  // namespace partita::ops
