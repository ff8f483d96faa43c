/// sort and top_k.
///
/// sort orders floating-point numbers as -inf, ..., -0 = +0, ..., +inf, NaN. (StableHLO leaves the
/// order to a comparison function; this order is that of jax.lax.sort.) top_k uses the total order
/// of IEEE 754, as jax.lax.top_k does: -NaN, -inf, ..., -0, +0, ..., +inf, NaN.
#pragma once

#include <partita/op/bitcast_convert.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Sorts along one dimension. The first operands are the keys, most significant first; the other
/// operands are permuted in the same way. The sort is stable.
///
/// Shapes    (s...), (s...) -> (s...), (s...)
/// Attributes: dim, number of keys, descending (0 or 1)
/// Tile map  ([i, n], [i, n]) -> ([i, n], [i, n]), n cannot be sharded
/// Cost      counted as n log2 n comparisons of each line, rounded up
/// Errors    S187 shapes differ, S188 dimension or number of keys out of range
struct sort {
  static constexpr std::string_view name = "sort";
  static constexpr std::string_view needs_whole =
      "the position of an element depends on all others";
  static constexpr void infer(infer_context& c) {
    if (c.attrs.size() != 3 || c.operands.empty())
      return c.fail("S188", "sort: ", c.operands.size(), " operands and ", c.attrs.size(),
                    " attributes; 1 or more and 3 are needed");
    const std::int64_t dim = c.attrs[0], keys = c.attrs[1];
    if (dim < 0 || dim >= c.operands[0].shape.rank)
      return c.fail("S188", "sort: dimension ", dim, " is out of range for ", c.operands[0]);
    if (keys < 1 || keys > static_cast<std::int64_t>(c.operands.size()))
      return c.fail("S188", "sort: ", keys, " keys of ", c.operands.size(), " operands");
    for (const auto& t : c.operands)
      if (!same_shape(t.shape, c.operands[0].shape))
        return c.fail("S187", "sort: shapes ", c.operands[0].shape, " and ", t.shape, " differ");
    c.result = c.operands[0];
    for (std::size_t i = 1; i < c.operands.size(); ++i) c.more.push_back(c.operands[i]);
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) {
      if (d == c.attrs[0]) continue;
      c.tile(c.result.shape[d], d);
      for (int i = 0; i < static_cast<int>(c.operands.size()); ++i) {
        c.operand(i, d);
        if (i > 0) c.also(i, d);
      }
    }
  }
  /// Returns each cotangent to the position that its element came from, by sorting by positions.
  static constexpr void derive(derive_context& c);
  static constexpr std::int64_t flops(const cost_context& c) {
    const std::int64_t n = c.result.shape[static_cast<int>(c.attrs[0])];
    std::int64_t log = 0;
    while ((std::int64_t{1} << log) < n) ++log;
    return saturating_multiply(c.result.shape.elements(), log);
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.number("dim");
    f.number_or("keys", 1);
    f.flag("descending");
  }
};

/// Returns the k largest elements along the last dimension in total order, largest first, each with
/// its position. Among equal elements, the one with the smallest position comes first.
///
/// Shapes    values (..., n), positions (..., n) of integers -> (..., k), (..., k)
/// Attributes: k
/// Tile map  ([i, n], [i, n]) -> ([i, k], [i, k])  again={n}, k cannot be sharded: the k largest of
///           each shard are gathered and reduced again, if that is fewer bytes than gathering the
///           values
/// Cost      one flop per element
/// Errors    S103 shapes differ, S120 positions not of an integer type, S189 k is not between 0 and
///           n, or rank 0
struct top_k {
  static constexpr std::string_view name = "top_k";
  static constexpr int operand_count = 2;
  static constexpr void infer(infer_context& c) {
    const shape& from = c.operands[0].shape;
    const std::int64_t k = c.attrs.empty() ? -1 : c.attrs[0];
    if (from.rank == 0) return c.fail("S189", "top_k: ", c.operands[0], " has no last dimension");
    if (k < 0) return c.fail("S189", "top_k: k is ", k, "; 0 or more is needed");
    if (from[from.rank - 1] != dyn && k > from[from.rank - 1])
      return c.fail("S189", "top_k: k is ", k, "; the last dimension of ", c.operands[0],
                    " must have as many elements");
    const tensor_type& positions = c.operands[1];
    if (!is_integer(positions.element))
      return c.fail("S120", "top_k: element type ", name_of(positions.element),
                    " of the positions is not an integer type");
    if (!same_shape(from, positions.shape))
      return c.fail("S103", "top_k: shapes ", from, " and ", positions.shape, " differ");
    c.result = c.operands[0];
    c.result.shape[from.rank - 1] = k;
    c.more.push_back({positions.element, c.result.shape});
  }
  static constexpr void tile_map(tile_map_context& c) {
    const int last = c.result.shape.rank - 1;
    for (int d = 0; d < last; ++d)
      c.tile(c.result.shape[d], d).also(1, d).operand(0, d).operand(1, d);
    if (c.attrs[0] == 0) return;
    const std::int64_t value = size_of(c.operands[0].element);
    const std::int64_t sent =
        saturating_multiply(c.attrs[0], value + size_of(c.operands[1].element));
    c.tile(c.operands[0].shape[last], no_dim).operand(0, last).operand(1, last);
    c.again((sent + value - 1) / value);
  }
  static constexpr void derive(derive_context& c);
  static constexpr std::int64_t flops(const cost_context& c) {
    return c.operands[0].shape.elements();
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.number("k");
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::sort)
PARTITA_OP(op::top_k)
}  // namespace partita

namespace partita::ops {

/// Emits a sort and returns the first result; the other results are the next values.
constexpr value_id sort(builder& b, span<const value_id> operands, int dim, int keys,
                        bool descending) {
  const std::int64_t attrs[] = {dim, keys, descending};
  return b.emit(def<op::sort>, operands, attrs);
}
/// Emits a top_k whose positions are those along the last dimension, of i32.
constexpr value_id top_k(builder& b, value_id x, std::int64_t k) {
  if (b.failed() || x < 0) return -1;
  const shape from = b.type(x).shape;
  const value_id positions =
      from.rank == 0 ? x : ops::iota(b, tensor_type{dtype::i32, from}, from.rank - 1);
  return b.emit(def<op::top_k>, {x, positions}, {k});
}

}  // namespace partita::ops

namespace partita::op {

constexpr void sort::derive(derive_context& c) {
  builder& b = c.b;
  const vec<std::int64_t> attrs(b.p.attrs(c.op).data(), b.p.attrs(c.op).data() + 3);
  const int dim = static_cast<int>(attrs[0]), n = static_cast<int>(c.operands.size());
  const shape to = b.type(b.p.operand(c.op, 0)).shape;
  vec<value_id> operands(b.p.operands(c.op).data(), b.p.operands(c.op).data() + n);
  operands.push_back(ops::iota(b, tensor_type{dtype::i64, to}, dim));
  const value_id positions =
      n + ops::sort(b, operands, dim, static_cast<int>(attrs[1]), attrs[2] != 0);
  for (int i = 0; i < n && !b.failed(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!c.wanted[at] || c.cotangents[at] < 0) continue;
    const value_id pair[] = {positions, c.cotangents[at]};
    c.operands[at] = 1 + ops::sort(b, pair, dim, 1, false);
  }
}

/// Maps floats to integers in the order of IEEE 754's total order: the bits, with all bits but the
/// sign inverted for negative numbers. Numbers of other types are returned unchanged.
constexpr value_id total_order_key(builder& b, value_id x) {
  if (b.failed() || x < 0 || !is_floating(b.type(x).element)) return x;
  const std::int64_t width = 8 * size_of(b.type(x).element);
  const dtype t = width == 16 ? dtype::i16 : width == 32 ? dtype::i32 : dtype::i64;
  const value_id bits = ops::bitcast_convert(b, x, t);
  const value_id sign = ops::shift_right_arithmetic(b, bits, ops::integer(b, t, width - 1));
  const value_id inverted = ops::logical_and(b, sign, ops::integer(b, t, greatest_integer(t)));
  return ops::logical_xor(b, bits, inverted);
}
/// Values and positions sorted along the last dimension in top_k's order.
struct sorted_pairs {
  value_id values = -1, positions = -1;

  constexpr sorted_pairs(builder& b, value_id given, value_id at) {
    const value_id operands[] = {total_order_key(b, given), ops::logical_not(b, at), given, at};
    if (b.failed()) return;
    const value_id first = ops::sort(b, operands, b.type(given).shape.rank - 1, 2, true);
    values = first + 2;
    positions = first + 3;
  }
};
/// True if `positions` is the iota along its last dimension.
constexpr bool count_along_last(const program& p, value_id positions) {
  const op_id o = p.producer(positions);
  return p.op(o).def->id == def<iota>.id && p.attrs(o)[0] == p.type(positions).shape.rank - 1;
}

/// Returns the cotangents to the positions of the selected elements; the others get 0.
constexpr void top_k::derive(derive_context& c) {
  if (c.cotangents[0] < 0) return;
  builder& b = c.b;
  const value_id x = b.p.operand(c.op, 0), given = b.p.operand(c.op, 1);
  const value_id selected = b.p.op(c.op).result + 1;
  const std::int64_t k = b.p.attrs(c.op)[0];
  const tensor_type from = b.type(x);
  const int rank = from.shape.rank, last = rank - 1;
  if (count_along_last(b.p, given)) {
    std::int64_t batch[max_rank] = {};
    for (int d = 0; d < last; ++d) batch[d] = d;
    const ops::ints others{batch, static_cast<std::size_t>(last)};
    const std::int64_t along[] = {last};
    c.operands[0] = ops::scatter(b, ops::scatter_update::add, from.shape, selected, c.cotangents[0],
                                 {{}, along, others, others, along, rank});
    return;
  }
  tensor_type rest = from;
  rest.shape[last] -= k;
  const value_id operands[] = {total_order_key(b, x), ops::logical_not(b, given),
                               ops::iota(b, tensor_type{dtype::i64, from.shape}, last)};
  const value_id positions = 2 + ops::sort(b, operands, last, 2, true);
  if (b.failed()) return;
  const value_id parts[] = {c.cotangents[0], ops::constant(b, rest, 0)};
  const value_id placed[] = {positions, ops::concatenate(b, parts, last)};
  c.operands[0] = 1 + ops::sort(b, placed, last, 1, false);
}

}  // namespace partita::op
