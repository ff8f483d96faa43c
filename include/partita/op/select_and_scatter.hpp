/// select_and_scatter and select_and_gather: ops that select one element in each window.
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

/// Base of both ops. Windows slide over all dimensions of the first operand (see window.hpp). In
/// each, the maximum (ge) or minimum (le) element is selected. Elements are visited in row-major
/// order, and an element replaces the selected one unless `selected >= element` (`<=`), so the
/// first of equal ones is kept. Padding is never selected.
///
/// Attributes: 0 for ge or 1 for le, then lists as in reduce_window
struct selecting_op {
  /// Returns the positions of the windows; empty on errors.
  ///
  /// Errors    S102 element types differ, S104 not a number, S150 count of attributes, S151 a
  ///           number out of range, S153 neither ge nor le
  static constexpr shape check(infer_context& c, std::string_view name) {
    same_elements(c, name);
    need_number(c, name);
    const shape positions = window_positions(c, name, 1);
    if (!c.error && c.attrs[0] != 0 && c.attrs[0] != 1)
      c.fail("S153", name, ": comparison ", c.attrs[0], " is neither ge (0) nor le (1)");
    return positions;
  }
  static constexpr windows windows_of(const std::int64_t* attrs, int rank) {
    return windows(attrs + 1, rank);
  }
  static constexpr ops::direction direction_of(std::int64_t stored) {
    return stored == 0 ? ops::direction::ge : ops::direction::le;
  }
  /// True if no window over n elements covers padding.
  static constexpr bool inside(const window_dim& w, std::int64_t n, std::int64_t m) {
    return w.low <= 0 && w.high_for(n, m) <= 0;
  }
  /// As `inside`, for the windows before the extents were padded.
  static constexpr bool lie_inside(const halo_context& c, const window_dim& w,
                                   const shape& positions) {
    return c.grown || inside(w, c.operand_extent(0), positions[c.result_dim]);
  }
  /// True if the windows can be sharded although some cover padding at the ends: m windows over n
  /// elements.
  static constexpr bool cuts(const window_dim& w, std::int64_t n, std::int64_t m) {
    return w.base_dilation == 1 && m * w.stride == n;
  }
  /// Shards windows that cover padding at the ends. Padding must stay padding, since any value
  /// there could be selected if the elements equal it. So each shard reads a range inside the
  /// operand, with enough elements around it that windows over its ends affect the shard only at
  /// the ends of the operand. Only the shard's part of the result is kept.
  static constexpr void halo_moved(halo_context& c) {
    const int rank = c.result.shape.rank, d = c.result_dim;
    const std::int64_t n = c.operand_extent(0), block = n / c.pieces;
    window_dim w = windows_of(c.attrs.data(), rank).at[d];
    halo_range& x = c.ranges[0];
    x = halo_range::exact(n, c.pieces);
    const std::int64_t span = window_dim::span(w.size, w.dilation) - 1;
    const std::int64_t reach = span > w.low ? span : w.low;
    const std::int64_t around = (reach + w.stride - 1) / w.stride * w.stride;
    x.first = -around;
    x.length = block + 2 * around;
    x.inside = true;
    c.possible = w.low >= 0 && x.length <= n;
    w.high = w.high_for(x.length, x.length / w.stride);
    replace_window(c.attrs.data() + 1, rank, d, w);
  }
  /// Adds the factor along dimension d, if the windows can be sharded along it.
  static constexpr void factor(tile_map_context& c, const window_dim& w, int d, std::int64_t n,
                               std::int64_t m, bool cut) {
    if (w.trivial())
      c.tile(n, d).operand(0, d).operand(1, d);
    else if (const auto both = common_extent(n, m); cut && both > 0)
      c.tile(both, d).operand(0, d).operand(1, d).halo();
  }
  /// Returns the corresponding range of the positions.
  static constexpr halo_range of_positions(const halo_range& x, std::int64_t stride) {
    halo_range r = x;
    r.first /= stride;
    r.step /= stride;
    r.length /= stride;
    return r;
  }
  static constexpr void stretch(halo_context& c, const shape& positions) {
    const int rank = c.result.shape.rank, d = c.result_dim;
    window_dim w = windows_of(c.attrs.data(), rank).at[d];
    c.possible = lie_inside(c, w, positions);
    c.apart = c.possible && w.base_dilation == 1;
    w.high = w.high_for(c.operand_extent(0), positions[d]);
    replace_window(c.attrs.data() + 1, rank, d, w);
    c.ranges[0].fill = combiner::stack;  // any value: no window of the original ones reaches there
  }
  static constexpr std::int64_t flops(const cost_context& c) { return window_flops(c, 1); }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.word("", {"ge", "le"});
    window_attributes(f, f.operands[0].shape.rank);
  }
};

/// Adds each element of `source` at the position of the element selected in its window of
/// `operand`, starting from zeros. A window without elements adds nothing.
///
/// Differs from StableHLO: comparison and sum instead of regions, and no initial value; windows may
/// be dilated.
///
/// Shapes    operand (n...), source (positions of the windows...) -> (n...)
/// Tile map  ([i, j~, k], [i, j~, k], window=[1, 2, 1], strides=[1, 2, 1]) -> ([i, j, k])
/// Errors    those of selecting_op, S154 the source has another shape
struct select_and_scatter : selecting_op {
  static constexpr std::string_view name = "select_and_scatter";
  static constexpr int operand_count = 2;
  static constexpr void infer(infer_context& c) {
    const shape positions = check(c, name);
    if (!c.error && !same_shape(positions, c.operands[1].shape))
      c.fail("S154", name, ": the source has shape ", c.operands[1].shape, "; the windows of ",
             c.operands[0], " have positions ", positions);
    c.result = c.operands[0];
  }
  static constexpr void tile_map(tile_map_context& c) {
    const windows w = windows_of(c.attrs, c.result.shape.rank);
    for (int d = 0; d < w.rank; ++d) {
      const std::int64_t n = c.result.shape[d], m = c.operands[1].shape[d];
      const bool possible = inside(w.at[d], n, m) ? w.at[d].cuts(n, m) : cuts(w.at[d], n, m);
      factor(c, w.at[d], d, n, m, possible);
    }
  }
  static constexpr void halo(halo_context& c) {
    const window_dim w = windows_of(c.attrs.data(), c.result.shape.rank).at[c.result_dim];
    if (lie_inside(c, w, c.operands[1].shape)) return halo_inside(c, w);
    halo_moved(c);
    c.ranges[1] = of_positions(c.ranges[0], w.stride);
    c.made = c.ranges[0].length;
  }
  /// Reads for each shard the windows that reach into it, and all elements that they cover. If the
  /// block size is not a multiple of the stride, windows advance by a few elements more or fewer
  /// than blocks. Shards then read more, by the largest such difference.
  static constexpr void halo_inside(halo_context& c, window_dim w) {
    const std::int64_t block = c.operand_extent(0) / c.pieces, m = c.operand_extent(1),
                       span = window_dim::span(w.size, w.dilation);
    const std::int64_t advance = (2 * block + w.stride) / (2 * w.stride),  // windows per piece
        apart = block - advance * w.stride;
    std::int64_t first = 0, last = 0;
    bool any = false;
    for (std::int64_t i = 0; i < c.pieces && (i == 0 || apart != 0); ++i) {
      const std::int64_t start = i * block + w.low;
      std::int64_t least = -window_dim::floor_of(-(start + 1 - span), w.stride),
                   greatest = window_dim::floor_of(start + block - 1, w.stride);
      if (apart != 0 && least < 0) least = 0;
      if (apart != 0 && greatest >= m) greatest = m - 1;
      if (least > greatest && apart != 0) continue;
      least -= i * advance;
      greatest -= i * advance;
      if (!any || least < first) first = least;
      if (!any || greatest > last) last = greatest;
      any = true;
    }
    const std::int64_t from = first * w.stride - w.low, to = last * w.stride - w.low + span;
    const std::int64_t end_apart = (c.pieces - 1) * apart;
    const std::int64_t low = end_apart < 0 ? end_apart : 0, high = end_apart < 0 ? 0 : end_apart;
    const std::int64_t begin = from < low ? from : low, end = to > block + high ? to : block + high;
    c.possible = w.base_dilation == 1;
    c.ranges[0] = {begin, advance * w.stride, end - begin};
    c.ranges[0].any = true;  // padding is never selected, so nothing is added there
    c.ranges[1] = {first, advance, last - first + 1};
    if (end - begin > block) c.made = end - begin;
    w.low = begin - from;
    w.high = w.high_for(end - begin, last - first + 1);
    replace_window(c.attrs.data() + 1, c.result.shape.rank, c.result_dim, w);
  }
  /// Handles an operand padded for uneven shards: nothing is added after the last window.
  static constexpr void stretch(halo_context& c) {
    selecting_op::stretch(c, c.operands[1].shape);
    c.alone = 1;
  }
  /// Sends to the source the cotangent at the selected elements.
  static constexpr void derive(derive_context& c) {
    if (!c.wanted[1]) return;
    const value_id x = c.b.p.operand(c.op, 0);
    const auto attrs = c.b.p.attrs(c.op);
    const windows w = windows_of(attrs.data(), c.b.type(x).shape.rank);
    c.operands[1] = ops::select_and_gather(c.b, x, c.cotangent, direction_of(attrs[0]), w.all());
  }
};

/// Returns, for each window of `operand`, the element of `values` at the position of the selected
/// element, or 0 for a window without elements. This is the transpose of select_and_scatter.
/// (StableHLO has no such op.)
///
/// Shapes    operand (n...), values (n...) -> (positions of the windows...)
/// Tile map  ([i, j~, k], [i, j~, k], window=[1, 2, 1], strides=[1, 2, 1]) -> ([i, j, k])
/// Errors    those of selecting_op, S103 shapes differ
struct select_and_gather : selecting_op {
  static constexpr std::string_view name = "select_and_gather";
  static constexpr int operand_count = 2;
  static constexpr void infer(infer_context& c) {
    const shape positions = check(c, name);
    if (!c.error && !same_shape(c.operands[0].shape, c.operands[1].shape))
      c.fail("S103", name, ": shapes ", c.operands[0].shape, " and ", c.operands[1].shape,
             " differ");
    c.result = {c.operands[0].element, positions};
  }
  static constexpr void tile_map(tile_map_context& c) {
    const windows w = windows_of(c.attrs, c.result.shape.rank);
    for (int d = 0; d < w.rank; ++d) {
      const std::int64_t n = c.operands[0].shape[d], m = c.result.shape[d];
      const bool possible = inside(w.at[d], n, m) ? w.at[d].cuts(n, m) : cuts(w.at[d], n, m);
      factor(c, w.at[d], d, n, m, possible);
    }
  }
  static constexpr void halo(halo_context& c) {
    const int rank = c.result.shape.rank, d = c.result_dim;
    const window_dim w = windows_of(c.attrs.data(), rank).at[d];
    const std::int64_t n = c.operand_extent(0), m = c.result.shape[d];
    if (lie_inside(c, w, c.result.shape)) {
      window_dim local;
      c.possible = w.cut(n, m, c.pieces, c.ranges[0], local);
      c.ranges[0].any = true;
      replace_window(c.attrs.data() + 1, rank, d, local);
    } else {
      halo_moved(c);
      c.made = c.ranges[0].length / w.stride;
      c.unit = w.stride;
    }
    c.ranges[1] = c.ranges[0];
  }
  static constexpr void stretch(halo_context& c) {
    selecting_op::stretch(c, c.result.shape);
    c.ranges[1].fill = combiner::stack;
  }
  static constexpr void derive(derive_context& c) {
    if (!c.wanted[1]) return;
    const value_id x = c.b.p.operand(c.op, 0);
    const auto attrs = c.b.p.attrs(c.op);
    const windows w = windows_of(attrs.data(), c.b.type(x).shape.rank);
    c.operands[1] = ops::select_and_scatter(c.b, x, c.cotangent, direction_of(attrs[0]), w.all());
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::select_and_scatter)
PARTITA_OP(op::select_and_gather)
}  // namespace partita

namespace partita::ops {

constexpr value_id emit_selecting(builder& b, const op_def& op, value_id x, value_id y,
                                  direction select, span<const window_dim> w) {
  vec<std::int64_t> attrs;
  attrs.push_back(select == direction::ge ? 0 : select == direction::le ? 1 : -1);
  op::store_windows(attrs, w);
  const value_id operands[] = {x, y};
  return b.emit(op, operands, {attrs.data(), attrs.size()});
}
constexpr value_id select_and_scatter(builder& b, value_id operand, value_id source,
                                      direction select, span<const window_dim> w) {
  return emit_selecting(b, def<op::select_and_scatter>, operand, source, select, w);
}
constexpr value_id select_and_gather(builder& b, value_id operand, value_id values,
                                     direction select, span<const window_dim> w) {
  return emit_selecting(b, def<op::select_and_gather>, operand, values, select, w);
}

}  // namespace partita::ops
