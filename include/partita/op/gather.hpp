/// gather and scatter_add along the first dimension (embedding tables).
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Rows of a table: result[i..., :] = table[indices[i...], :]. Indices out of range are clamped, as
/// in StableHLO (whose dimension numbers are restricted here to the rows of a table).
///
/// Shapes    table (rows, d...), indices (i...) of an integer type -> (i..., d...)
/// Tile map  ([v, d], [i]) -> ([i, d]), v stays whole
/// Errors    S111 indices are not integers, or the table has no dimension
struct gather {
  static constexpr std::string_view name = "gather";
  static constexpr void infer(infer_context& c) {
    const auto& table = c.operands[0];
    const auto& indices = c.operands[1];
    if (table.shape.rank == 0 || !is_integer(indices.element))
      return c.fail("S111",
                    "gather: a table of rank 1 or more and integer indices are needed, not ", table,
                    " and ", indices);
    c.result = {table.element, indices.shape};
    for (int d = 1; d < table.shape.rank; ++d) c.result.shape.push_back(table.shape[d]);
  }
  static constexpr void tile_map(tile_map_context& c) {
    const int indexed = c.operands[1].shape.rank;
    for (int d = 0; d < indexed; ++d) c.tile(c.result.shape[d], d).operand(1, d);
    for (int d = indexed; d < c.result.shape.rank; ++d)
      c.tile(c.result.shape[d], d).operand(0, d - indexed + 1);
  }
  static constexpr void derive(derive_context& c) {
    if (c.wanted[0])
      c.operands[0] = ops::scatter_add(c.b, c.b.p.operand(c.op, 1), c.cotangent,
                                       c.b.type(c.b.p.operand(c.op, 0)).shape[0]);
  }
};

/// Sums rows by index: result[r, :] = sum of updates[i..., :] over all i... with indices[i...] = r.
/// Indices out of range are ignored, as in StableHLO (whose scatter also takes a start value; add
/// it).
///
/// Shapes    indices (i...), updates (i..., d...) -> (rows, d...); rows as declared
/// Tile map  ([i], [i, d]) -> ([r, d])  reduce={i:add}, r stays whole
/// Errors    S112 indices are not integers, or the updates do not begin with their shape
struct scatter_add {
  static constexpr std::string_view name = "scatter_add";
  static constexpr void infer(infer_context& c) {
    const auto& indices = c.operands[0];
    const auto& updates = c.operands[1];
    bool good = is_integer(indices.element) && updates.element != dtype::boolean &&
                updates.shape.rank >= indices.shape.rank;
    for (int d = 0; good && d < indices.shape.rank; ++d)
      good = same_extent(indices.shape[d], updates.shape[d]);
    if (!good)
      return c.fail("S112", "scatter_add: updates ", updates,
                    " do not begin with the shape of integer indices ", indices);
    c.result.element = updates.element;
    c.result.shape.push_back(c.declared.shape[0]);
    for (int d = indices.shape.rank; d < updates.shape.rank; ++d)
      c.result.shape.push_back(updates.shape[d]);
  }
  static constexpr void tile_map(tile_map_context& c) {
    const int indexed = c.operands[0].shape.rank;
    for (int d = 0; d < indexed; ++d)
      c.reduce(c.operands[1].shape[d], combiner::add).operand(0, d).operand(1, d);
    for (int d = indexed; d < c.operands[1].shape.rank; ++d)
      c.tile(c.operands[1].shape[d], d - indexed + 1).operand(1, d);
  }
  /// Rows of the cotangent; an index out of range contributed nothing and gets nothing.
  static constexpr void derive(derive_context& c) {
    if (!c.wanted[1]) return;
    builder& b = c.b;
    const value_id indices = b.p.operand(c.op, 0);
    const tensor_type index_type = b.type(indices), rows = b.type(c.cotangent);
    const value_id taken = ops::gather(b, c.cotangent, indices);
    const value_id low =
        ops::compare(b, ops::direction::ge, indices, ops::scalar(b, index_type.element, 0));
    const value_id high =
        ops::compare(b, ops::direction::lt, indices,
                     ops::scalar(b, index_type.element, static_cast<double>(rows.shape[0])));
    std::int64_t dims[max_rank] = {};
    for (int i = 0; i < index_type.shape.rank; ++i) dims[i] = i;
    const ops::ints lead{dims, static_cast<std::size_t>(index_type.shape.rank)};
    const shape to = b.type(taken).shape;
    const value_id zero = ops::scalar(b, rows.element, 0);
    value_id g = ops::select(b, ops::broadcast_in_dim(b, low, to, lead), taken, zero);
    c.operands[1] = ops::select(b, ops::broadcast_in_dim(b, high, to, lead), g, zero);
  }
  static constexpr std::int64_t flops(const cost_context& c) {
    return c.operands[1].shape.elements();
  }
};

}  // namespace partita::op

namespace partita::ops {

constexpr value_id gather(builder& b, value_id table, value_id indices) {
  return b.emit(def<op::gather>, {table, indices});
}
constexpr value_id scatter_add(builder& b, value_id indices, value_id updates, std::int64_t rows) {
  tensor_type declared;
  declared.shape.push_back(rows);
  return b.emit(def<op::scatter_add>, {indices, updates}, {}, declared);
}

}  // namespace partita::ops
