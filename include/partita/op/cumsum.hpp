/// cumsum: running sums, products, maxima or minima along a dimension.
#pragma once

#include <partita/op/reduce_window.hpp>
#include <partita/op/running_cotangent.hpp>

namespace partita::op {

/// Computes result[i] = x[0] + ... + x[i] along a dimension. If exclusive, x[i] is not included; if
/// reverse, the sum runs from the other end. (StableHLO writes it as a reduce_window, which takes
/// quadratic time. A StableHLO reduce_window whose windows reach from each element to an end is
/// read as this op.)
///
/// Shapes    (n...) -> (n...)
/// Attributes: the dimension, 1 if reverse, 1 if exclusive, and the combiner (as in reduce), which
///           may be omitted if it is add
/// Tile map  ([i, k, j], dim=1) -> ([i, k, j])  carry={k:add}: each shard adds the total of the
///           shards before it
/// Cost      one flop per element
/// Errors    S104 element type not supported, S152 not a combiner, S155 bad dimension or flags
struct cumsum {
  static constexpr std::string_view name = "cumsum";
  static constexpr int operand_count = 1;
  static constexpr combiner combiner_of(span<const std::int64_t> attrs) {
    return attrs.size() < 4 ? combiner::add : static_cast<combiner>(attrs[3]);
  }
  static constexpr void infer(infer_context& c) {
    c.result = c.operands[0];
    if (c.attrs.size() != 3 && c.attrs.size() != 4)
      return c.fail("S155", name, ": ", c.attrs.size(),
                    " attributes; a dimension and two flags are needed");
    if (!check_combiner(c, name, combiner_names,
                        c.attrs.size() < 4 ? static_cast<int>(combiner::add) : c.attrs[3]))
      return;
    if (c.attrs[0] < 0 || c.attrs[0] >= c.result.shape.rank)
      return c.fail("S155", name, ": dimension ", c.attrs[0], " is out of range for ", c.result);
    for (std::size_t i = 1; i < 3; ++i)
      if (c.attrs[i] != 0 && c.attrs[i] != 1)
        return c.fail("S155", name, ": flag ", c.attrs[i], " is neither 0 nor 1");
  }
  static constexpr void tile_map(tile_map_context& c) {
    const combiner combine = combiner_of({c.attrs, static_cast<std::size_t>(c.attr_count)});
    for (int d = 0; d < c.result.shape.rank; ++d) {
      c.tile(c.result.shape[d], d).operand(0, d);
      if (d == c.attrs[0]) c.carry(combine, c.attrs[1] != 0);
    }
  }
  /// For add, sums the cotangents from the other end. For other combiners, see running_cotangent.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const auto attrs = b.p.attrs(c.op);
    const int dim = static_cast<int>(attrs[0]);
    const bool reverse = attrs[1] != 0, exclusive = attrs[2] != 0;
    const combiner combine = combiner_of(attrs);
    if (combine == combiner::add) {
      c.operands[0] = ops::cumsum(b, c.cotangent, dim, !reverse, exclusive);
      return;
    }
    value_id cotangent = c.cotangent;
    if (exclusive) cotangent = running_cotangent::ahead(b, cotangent, dim, reverse ? -1 : 1);
    c.operands[0] = running_cotangent(b, b.p.operand(c.op, 0), cotangent, dim, reverse).of(combine);
  }
  /// Returns a window that reaches from each element to the first (or last) one.
  static constexpr windows windows_of(const shape& s, span<const std::int64_t> attrs) {
    const int dim = static_cast<int>(attrs[0]);
    const std::int64_t moved = attrs[2] != 0 ? 1 : 0;
    windows all;
    all.rank = s.rank;
    window_dim& w = all.at[dim];
    w.size = s[dim];
    (attrs[1] != 0 ? w.high : w.low) = s[dim] - 1 + moved;
    (attrs[1] != 0 ? w.low : w.high) = -moved;
    return all;
  }
  static constexpr std::int64_t flops(const cost_context& c) { return c.result.shape.elements(); }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.number("dim");
    f.flag("reverse");
    f.flag("exclusive");
    f.last_word("combine", combiner_names);
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::cumsum)
}  // namespace partita

namespace partita::ops {

constexpr value_id cumsum(builder& b, value_id x, int dim, bool reverse, bool exclusive,
                          combiner combine) {
  const std::int64_t attrs[] = {dim, reverse, exclusive, static_cast<int>(combine)};
  const value_id operands[] = {x};
  return b.emit(def<op::cumsum>, operands, {attrs, combine == combiner::add ? 3u : 4u});
}

}  // namespace partita::ops
