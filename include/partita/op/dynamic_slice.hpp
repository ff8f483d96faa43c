/// dynamic_slice and dynamic_update_slice: read or write a box at a computed position.
#pragma once

#include <partita/op/local_index.hpp>

namespace partita::op {

/// Checks the start indices: one rank-0 integer per dimension. They are clamped so that the box is
/// within the operand.
///
/// Errors    S136 the starts are not one integer scalar per dimension
constexpr bool check_starts(infer_context& c, std::string_view name, std::size_t first) {
  const auto& x = c.operands[0];
  const std::size_t count = c.operands.size() < first ? 0 : c.operands.size() - first;
  if (count != static_cast<std::size_t>(x.shape.rank)) {
    c.fail("S136", name, ": ", count, " start indices for ", x);
    return false;
  }
  for (std::size_t i = first; i < c.operands.size(); ++i) {
    const auto& start = c.operands[i];
    if (start.shape.rank == 0 && is_integer(start.element) &&
        start.element == c.operands[first].element)
      continue;
    c.fail("S136", name, ": start index ", i - first, " has type ", start,
           "; integer scalars of one type are needed");
    return false;
  }
  return true;
}
/// Returns the start operands of a dynamic_slice or dynamic_update_slice.
constexpr vec<value_id> starts_of(const program& p, op_id o, std::size_t first) {
  const auto all = p.operands(o);
  return {all.data() + first, all.data() + all.size()};
}

/// Makes the starts (operands from `first` on) along sharded dimensions relative to the shard.
/// Returns a boolean value that is true if the box, which has size 1 along these dimensions, is in
/// the shard.
constexpr value_id local_starts(locate_context& c, vec<value_id>& operands, int first, shape box) {
  builder& b = c.b;
  const dtype given = b.type(operands[static_cast<std::size_t>(first)]).element;
  dtype t = local_index_type(given, 1);
  for (const located_piece& each : c.pieces)
    if (local_index_type(given, each.size) == dtype::i64) t = dtype::i64;
  const shape from = b.type(operands[0]).shape;
  value_id here = -1;
  for (int d = 0; d < from.rank; ++d) {
    value_id& start = operands[static_cast<std::size_t>(first + d)];
    int i = static_cast<int>(c.pieces.size()) - 1;
    while (i >= 0 && c.dim(i, 0) != d) --i;
    if (i < 0 && t == given) continue;
    const std::int64_t size = i < 0 ? from[d] : c.pieces[static_cast<std::size_t>(i)].size;
    start = clamped_index(b, start, size - box[d]);
    if (t != given) start = ops::convert(b, start, t);
    if (i < 0) continue;
    start = local_index(c, i, start);
    const value_id own = is_local_index(c, i, start);
    here = here < 0 ? own : ops::logical_and(b, here, own);
  }
  return here;
}

/// Reads the box of the given sizes at computed starts. Attributes: the size of every dimension, or
/// `ops::whole` for the full extent. A dimension of full extent can be sharded without
/// communication (its start is always clamped to 0).
///
/// Shapes    x (n...), starts (), ... -> (sizes...)
/// Tile map  ([i, 8, j@], [], [], [], sizes=[whole, 3, 1]) -> ([i, 3, 1])  reduce={j:add}: the
///           shard that has the element contributes it (j:or for i1)
/// Errors    S136 bad starts, S137 bad sizes
struct dynamic_slice {
  static constexpr std::string_view name = "dynamic_slice";
  static constexpr bool reads_part = true;
  static constexpr fusion_kind fusion = fusion_kind::loop;
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.rest("sizes");
  }
  static constexpr void infer(infer_context& c) {
    if (c.operands.empty()) return c.fail("S136", "dynamic_slice: no operand");
    if (!check_starts(c, name, 1)) return;
    c.result = c.operands[0];
    const shape& from = c.operands[0].shape;
    if (c.attrs.size() != static_cast<std::size_t>(from.rank))
      return c.fail("S137", "dynamic_slice: ", c.attrs.size(), " sizes for ", c.operands[0]);
    for (int d = 0; d < from.rank; ++d) {
      const std::int64_t size = c.attrs[static_cast<std::size_t>(d)];
      if (size == ops::whole) continue;
      if (size < 0 || (from[d] != dyn && size > from[d]))
        return c.fail("S137", "dynamic_slice: size ", size, " is out of range for dimension ", d,
                      " of ", c.operands[0]);
      c.result.shape[d] = size;
    }
  }
  static constexpr void tile_map(tile_map_context& c) {
    const shape& from = c.operands[0].shape;
    for (int d = 0; d < c.result.shape.rank; ++d)
      if (c.attrs[d] == ops::whole)
        c.tile(c.result.shape[d], d).operand(0, d);
      else if (c.attrs[d] == 1 && from[d] > 1)
        c.reduce(from[d], shard_combiner(c.result.element)).operand(0, d).located();
  }
  /// Reads the element if it is in this shard; otherwise contributes the identity of the reduction.
  static constexpr void locate(locate_context& c) {
    vec<value_id> operands(c.operands.data(), c.operands.data() + c.operands.size());
    const value_id here = local_starts(c, operands, 1, c.result_types[0].shape);
    const value_id found = c.emit(operands);
    c.results.push_back(
        ops::select(c.b, here, found, absent_value(c.b, c.result_types[0].element)));
  }
  /// Writes the cotangent into a tensor of zeros.
  static constexpr void derive(derive_context& c) {
    if (!c.wanted[0]) return;
    const vec<value_id> starts = starts_of(c.b.p, c.op, 1);
    const value_id zeros = ops::constant(c.b, c.b.type(c.b.p.operand(c.op, 0)), 0);
    c.operands[0] =
        ops::dynamic_update_slice(c.b, zeros, c.cotangent, {starts.data(), starts.size()});
  }
  static constexpr std::int64_t bytes(const cost_context& c) {
    return saturating_multiply(2, c.result.bytes());
  }
};

/// Replaces the box at computed starts by `update`. A dimension in which the update is as large as
/// the operand can be sharded without communication.
///
/// Shapes    x (n...), update (m...) with m <= n, starts (), ... -> (n...)
/// Tile map  ([i, 8, j@], [i, 3, 1], [], [], []) -> ([i, 8, j@]): only the shard that contains the
///           element is updated
/// Errors    S102 element types differ, S136 bad starts, S138 the update does not fit
struct dynamic_update_slice {
  static constexpr std::string_view name = "dynamic_update_slice";
  static constexpr fusion_kind fusion = fusion_kind::last;
  static constexpr bool in_place = true;
  static constexpr void infer(infer_context& c) {
    if (c.operands.size() < 2) return c.fail("S138", "dynamic_update_slice: no update");
    if (!check_starts(c, name, 2)) return;
    const auto& x = c.operands[0];
    const auto& update = c.operands[1];
    c.result = x;
    if (x.element != update.element)
      return c.fail("S102", "dynamic_update_slice: element types ", name_of(x.element), " and ",
                    name_of(update.element), " differ; use convert");
    bool good = c.attrs.empty() && x.shape.rank == update.shape.rank;
    for (int d = 0; good && d < x.shape.rank; ++d)
      good = x.shape[d] == dyn || update.shape[d] <= x.shape[d];
    if (!good) c.fail("S138", "dynamic_update_slice: update ", update, " does not fit in ", x);
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d)
      if (c.operands[1].shape[d] == c.result.shape[d])
        c.tile(c.result.shape[d], d).operand(0, d).operand(1, d);
      else if (c.operands[1].shape[d] == 1 && c.result.shape[d] > 1)
        c.tile(c.result.shape[d], d).operand(0, d).located();
  }
  static constexpr void locate(locate_context& c) {
    vec<value_id> operands(c.operands.data(), c.operands.data() + c.operands.size());
    const value_id here = local_starts(c, operands, 2, c.b.type(c.operands[1]).shape);
    c.results.push_back(ops::select(c.b, here, c.emit(operands), c.operands[0]));
  }
  /// Counts the update only: it is written in place.
  static constexpr std::int64_t bytes(const cost_context& c) {
    return saturating_multiply(2, c.operands[1].bytes());
  }
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const vec<value_id> list = starts_of(b.p, c.op, 2);
    const span<const value_id> starts{list.data(), list.size()};
    const tensor_type update = b.type(b.p.operand(c.op, 1));
    if (c.wanted[0])
      c.operands[0] =
          ops::dynamic_update_slice(b, c.cotangent, ops::constant(b, update, 0), starts);
    if (c.wanted[1])
      c.operands[1] =
          ops::dynamic_slice(b, c.cotangent, starts,
                             {update.shape.extents, static_cast<std::size_t>(update.shape.rank)});
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::dynamic_slice)
PARTITA_OP(op::dynamic_update_slice)
}  // namespace partita

namespace partita::ops {

/// Emits a dynamic_slice. A size equal to the extent is stored as `whole`.
constexpr value_id dynamic_slice(builder& b, value_id x, span<const value_id> starts, ints sizes) {
  if (x < 0) return -1;
  const shape from = b.type(x).shape;
  vec<std::int64_t> attrs;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const bool full = static_cast<int>(d) < from.rank && sizes[d] == from[static_cast<int>(d)];
    attrs.push_back(full ? whole : sizes[d]);
  }
  vec<value_id> operands{x};
  operands.insert_back(starts.begin(), starts.end());
  return b.emit(def<op::dynamic_slice>, {operands.data(), operands.size()},
                {attrs.data(), attrs.size()});
}
constexpr value_id dynamic_update_slice(builder& b, value_id x, value_id update,
                                        span<const value_id> starts) {
  vec<value_id> operands{x, update};
  operands.insert_back(starts.begin(), starts.end());
  return b.emit(def<op::dynamic_update_slice>, span(operands.data(), operands.size()), {});
}

}  // namespace partita::ops
