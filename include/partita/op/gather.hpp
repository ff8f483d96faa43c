/// gather: reads windows of the operand at computed positions.
#pragma once

#include <partita/op/gather_dims.hpp>
#include <partita/op/window_rows.hpp>

namespace partita::op {

/// Computes result[batch, offset] = operand[start + offset]. The start comes from the index vector
/// at `batch` and is clamped so that the window is within the operand. Attributes: the dimension
/// numbers (see gather_dims), then slice_sizes, one per operand dimension. A window dimension of
/// full extent has size `ops::whole` and can be sharded without communication. Collapsed and
/// batching dimensions have size 1 (StableHLO also allows 0). Without attributes, the windows are
/// rows of a table: result[i..., :] = table[indices[i...], :].
///
/// A window of an empty operand is zeros.
///
/// If the operand is sharded along gathered rows, each device gathers the rows that it has and
/// contributes -0 (0 for integers) for others; one all-reduce or reduce-scatter adds the
/// contributions, so that NaN, infinities and the sign of zero are preserved. Indices are clamped
/// to the global extent first. If rows and indices are sharded along one axis, the operand is
/// gathered; with the pass stationary_rows, the indices are gathered and the results
/// reduce-scattered instead, if that sends less. Rows that an axis does not divide are padded (see
/// uneven::pad); no index refers to the padding.
///
/// Shapes    operand (n...), indices (i..., starts) of an integer type -> (i..., window...)
/// Tile map  ([v@, d], [i]) -> ([i, d])  reduce={v:add}: each shard gathers the rows that it has,
///           and the results are summed (v:or for i1). This applies to dimensions along which
///           windows have one row, or are so small that the reduction sends less than a gather of
///           the operand. With the pass stationary_rows, i counts as evidence for both v and i
///           along one axis. A batching dimension is one factor of operand, indices and result
/// Cost      bytes: the result twice and the indices
/// Errors    S111 indices are not integers, or the operand of a row gather is a scalar; S139 bad
///           dimension numbers, S140 bad slice sizes
struct gather {
  static constexpr std::string_view name = "gather";
  static constexpr bool reads_part = true;
  static constexpr fusion_kind fusion = fusion_kind::loop;
  static constexpr bool costly = true;
  static constexpr int operand_count = 2;
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    gather_dims::attributes(f);
    f.rest("slice_sizes");
  }
  static constexpr void print(print_context& c) {
    if (!c.p.attrs(c.op).empty()) partita::ir_detail::print_attributes<gather>(c);
  }
  static constexpr void parse(parse_context& c) {
    if (!c.in.empty()) partita::ir_detail::parse_attributes<gather>(c);
  }

  static constexpr void infer(infer_context& c) {
    const auto& operand = c.operands[0];
    const auto& indices = c.operands[1];
    if (!is_integer(indices.element) || (c.attrs.empty() && operand.shape.rank == 0))
      return c.fail("S111",
                    "gather: a table of rank 1 or more and integer indices are needed, not ",
                    operand, " and ", indices);
    const gather_dims dims(c.attrs, operand.shape, indices.shape);
    if (!dims.fault.empty())
      return c.fail("S139", "gather: ", dims.fault, " for ", operand, " and ", indices);
    c.result.element = operand.element;
    for (int r = 0; r < dims.result_rank; ++r)
      c.result.shape.push_back(dims.index_dim[r] < 0 ? 0 : indices.shape[dims.index_dim[r]]);
    const ops::ints sizes = c.attrs.subspan(dims.attrs_read);
    if (!c.attrs.empty() && sizes.size() != static_cast<std::size_t>(operand.shape.rank))
      return c.fail("S140", "gather: ", sizes.size(), " slice sizes for ", operand);
    for (int d = 0; d < operand.shape.rank; ++d) {
      const std::int64_t extent = operand.shape[d];
      const std::int64_t size =
          sizes.empty() ? (d == 0 ? 1 : ops::whole) : sizes[static_cast<std::size_t>(d)];
      const bool in_window = dims.window_dim[d] >= 0;
      if (in_window ? size != ops::whole && (size < 0 || (extent != dyn && size > extent))
                    : size != 1)
        return c.fail("S140", "gather: slice size ", size, " is out of range for dimension ", d,
                      " of ", operand);
      if (in_window) c.result.shape[dims.window_dim[d]] = size == ops::whole ? extent : size;
    }
  }
  static constexpr void tile_map(tile_map_context& c) {
    const ops::ints attrs{c.attrs, static_cast<std::size_t>(c.attr_count)};
    const gather_dims dims(attrs, c.operands[0].shape, c.operands[1].shape);
    const ops::ints sizes = attrs.subspan(dims.attrs_read);
    for (int r = 0; r < dims.result_rank; ++r) {
      if (dims.index_dim[r] >= 0) c.tile(c.result.shape[r], r).operand(1, dims.index_dim[r]);
      for (int d = 0; d < dims.operand_rank; ++d) {
        const bool whole = sizes.empty() ? d > 0 : sizes[static_cast<std::size_t>(d)] == ops::whole;
        if (dims.window_dim[d] == r && whole) c.tile(c.result.shape[r], r).operand(0, d);
        if (dims.index_dim[r] >= 0 && dims.batching_dim[d] == dims.index_dim[r]) c.operand(0, d);
      }
    }
    const shape& from = c.operands[0].shape;
    const shape window = dims.window(c.result.shape);
    for (int d = 0; d < from.rank; ++d)
      if (is_partly_covered(dims, d, from, window) && (window[d] == 1 || is_small(c)))
        c.reduce(from[d], shard_combiner(c.result.element)).operand(0, d).located();
  }
  /// True if summing the result over shards sends fewer bytes than gathering the operand. (Not
  /// needed for single rows: those are always gathered in place.)
  static constexpr bool is_small(const tile_map_context& c) {
    return 2 * c.result.shape.elements() <= c.operands[0].shape.elements();
  }
  /// Gathers the windows that are in this shard; for other windows contributes the identity of the
  /// reduction.
  static constexpr void locate(locate_context& c) {
    builder& b = c.b;
    const shape part = b.type(c.operands[0]).shape, indices = b.type(c.operands[1]).shape;
    const gather_dims dims(c.attrs, part, indices);
    const shape window = dims.window(c.result_types[0].shape);
    if (c.pieces.size() > 1 || !are_rows(dims, c.dim(0, 0), window)) {
      vec<int> cut;
      for (int i = 0; i < static_cast<int>(c.pieces.size()); ++i) cut.push_back(c.dim(i, 0));
      const window_rows rows(c, dims, cut, part, window, c.operands[1], true);
      const value_id found =
          ops::gather(b, c.operands[0], rows.indices, rows.numbers,
                      {rows.window.extents, static_cast<std::size_t>(part.rank)});
      if (b.failed()) return;
      const value_id here = rows.all_here(b.type(found).shape);
      const value_id none = absent_value(b, c.result_types[0].element);
      c.results.push_back(rows.in_old_order(ops::select(b, here, found, none)));
      return;
    }
    const value_id index = clamped_index(b, c.operands[1], c.pieces[0].size - 1);
    const value_id own = local_index(c, 0, index);
    const value_id operands[] = {c.operands[0], own};
    const value_id found = c.emit(operands);
    const value_id here = dims.along_result(b, is_local_index(c, 0, own), c.result_types[0].shape);
    c.results.push_back(ops::select(b, here, found, absent_value(b, c.result_types[0].element)));
  }
  /// Adds the cotangent at the positions that the elements came from.
  static constexpr void derive(derive_context& c) {
    if (!c.wanted[0]) return;
    builder& b = c.b;
    const value_id indices = b.p.operand(c.op, 1);
    const shape from = b.type(b.p.operand(c.op, 0)).shape;
    const auto stored = b.p.attrs(c.op);
    const vec<std::int64_t> attrs(stored.data(), stored.data() + stored.size());
    const gather_dims dims({attrs.data(), attrs.size()}, from, b.type(indices).shape);
    const value_id starts =
        clamp_starts(b, dims, from, dims.window(b.type(c.cotangent).shape), indices);
    c.operands[0] = scatter_like(b, {attrs.data(), dims.attrs_read}, ops::scatter_update::add, -1,
                                 from, starts, c.cotangent);
  }
  static constexpr std::int64_t bytes(const cost_context& c) {
    return saturating_add(saturating_multiply(2, c.result.bytes()), c.operands[1].bytes());
  }
};

constexpr value_id gather_like(builder& b, ops::ints dims, value_id operand, value_id indices,
                               const shape& window) {
  const shape from = b.type(operand).shape;
  const gather_dims roles(dims, from, b.type(indices).shape);
  vec<std::int64_t> attrs(dims.data(), dims.data() + dims.size());
  for (int d = 0; d < from.rank && !dims.empty(); ++d)
    attrs.push_back(roles.window_dim[d] >= 0 && window[d] == from[d] ? ops::whole : window[d]);
  const value_id operands[] = {operand, indices};
  return b.emit(def<gather>, operands, {attrs.data(), attrs.size()});
}

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::gather)
}  // namespace partita

namespace partita::ops {

/// Emits a gather. A window dimension whose slice size is its extent is stored as `whole`.
constexpr value_id gather(builder& b, value_id operand, value_id indices,
                          const gather_dimensions& d, ints slice_sizes) {
  if (operand < 0 || indices < 0) return -1;
  const shape from = b.type(operand).shape;
  vec<std::int64_t> attrs = op::encode(d);
  bool rows = op::is_rows(d, from.rank, b.type(indices).shape.rank) &&
              static_cast<int>(slice_sizes.size()) == from.rank;
  const auto has = [](ints list, std::size_t dim) {
    for (auto each : list)
      if (each == static_cast<std::int64_t>(dim)) return true;
    return false;
  };
  for (std::size_t i = 0; i < slice_sizes.size(); ++i) {
    const bool full = static_cast<int>(i) < from.rank &&
                      slice_sizes[i] == from[static_cast<int>(i)] &&
                      !has(d.collapsed_slice_dims, i) && !has(d.operand_batching_dims, i);
    attrs.push_back(full ? whole : slice_sizes[i]);
    rows = rows && attrs.back() == (i == 0 ? 1 : whole);
  }
  if (rows) attrs.clear();
  const value_id operands[] = {operand, indices};
  return b.emit(def<op::gather>, operands, {attrs.data(), attrs.size()});
}
/// Emits a gather of rows of a table.
constexpr value_id gather(builder& b, value_id table, value_id indices) {
  return b.emit(def<op::gather>, {table, indices});
}

}  // namespace partita::ops
