/// sort and top_k.
///
/// Floating-point order: -inf, ..., -0 = +0, ..., +inf, NaN. (StableHLO leaves the order to a
/// comparison function; this one is that of jax.lax.sort.)
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Sorts along one dimension by the first operands, the first of them first; the others follow.
/// Equal keys keep their order.
///
/// Shapes    (s...), (s...) -> (s...), (s...)
/// Attributes: dim, number of keys, descending (0 or 1)
/// Tile map  ([i, n], [i, n]) -> ([i, n], [i, n]), n whole
/// Cost      counted as n log2 n comparisons of each line, rounded up
/// Errors    S187 shapes differ, S188 dimension or number of keys out of range
struct sort {
  static constexpr std::string_view name = "sort";
  static constexpr std::string_view needs_whole = "the place of an element follows from all others";
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
  /// A cotangent goes back to where its element came from: sorted by the positions.
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

/// The k greatest elements along the last dimension, greatest first, and where they are. Of equal
/// ones the first comes first.
///
/// Shapes    (..., n) -> (..., k), (..., k) of i32
/// Attributes: k
/// Tile map  ([i, n]) -> ([i, k], [i, k]), n and k whole
/// Errors    S189 k is not between 0 and n, or rank 0
struct top_k {
  static constexpr std::string_view name = "top_k";
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    const shape& from = c.operands[0].shape;
    const std::int64_t k = c.attrs.empty() ? -1 : c.attrs[0];
    if (from.rank == 0) return c.fail("S189", "top_k: ", c.operands[0], " has no last dimension");
    if (k < 0) return c.fail("S189", "top_k: k is ", k, "; 0 or more is needed");
    if (from[from.rank - 1] != dyn && k > from[from.rank - 1])
      return c.fail("S189", "top_k: k is ", k, "; the last dimension of ", c.operands[0],
                    " must have as many elements");
    c.result = c.operands[0];
    c.result.shape[from.rank - 1] = k;
    c.more.push_back({dtype::i32, c.result.shape});
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d + 1 < c.result.shape.rank; ++d)
      c.tile(c.result.shape[d], d).also(1, d).operand(0, d);
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

/// Gives the first result; the others are the values that follow.
constexpr value_id sort(builder& b, span<const value_id> operands, int dim, int keys,
                        bool descending) {
  const std::int64_t attrs[] = {dim, keys, descending};
  return b.emit(def<op::sort>, operands, attrs);
}
constexpr value_id top_k(builder& b, value_id x, std::int64_t k) {
  return b.emit(def<op::top_k>, {x}, {k});
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

constexpr void top_k::derive(derive_context& c) {
  if (c.cotangents[0] < 0) return;
  builder& b = c.b;
  const value_id x = b.p.operand(c.op, 0);
  const std::int64_t k = b.p.attrs(c.op)[0];
  const tensor_type from = b.type(x);
  const int last = from.shape.rank - 1;
  tensor_type rest = from;
  rest.shape[last] -= k;
  const value_id pair[] = {x, ops::iota(b, tensor_type{dtype::i64, from.shape}, last)};
  const value_id positions = 1 + ops::sort(b, pair, last, 1, true);
  const value_id parts[] = {c.cotangents[0], ops::constant(b, rest, 0)};
  const value_id placed[] = {positions, ops::concatenate(b, parts, last)};
  c.operands[0] = 1 + ops::sort(b, placed, last, 1, false);
}

}  // namespace partita::op
