/// cumsum: running sums along a dimension.
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

/// result[i] = x[0] + ... + x[i] along a dimension; without x[i] if exclusive; from the other end
/// if reverse. (StableHLO writes it as a reduce_window, which takes quadratic time.)
///
/// Shapes    (n...) -> (n...)
/// Attributes: the dimension, 1 if reverse, 1 if exclusive
/// Tile map  ([i, 8, j], dim=1) -> ([i, 8, j])
/// Cost      one flop per element
/// Errors    S104 not a number, S155 bad dimension or flags
struct cumsum {
  static constexpr std::string_view name = "cumsum";
  static constexpr std::string_view needs_whole = "an element is the sum of all up to it";
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    need_number(c, name);
    c.result = c.operands[0];
    if (c.attrs.size() != 3)
      return c.fail("S155", name, ": ", c.attrs.size(),
                    " attributes; a dimension and two flags are needed");
    if (c.attrs[0] < 0 || c.attrs[0] >= c.result.shape.rank)
      return c.fail("S155", name, ": dimension ", c.attrs[0], " is out of range for ", c.result);
    for (std::size_t i = 1; i < 3; ++i)
      if (c.attrs[i] != 0 && c.attrs[i] != 1)
        return c.fail("S155", name, ": flag ", c.attrs[i], " is neither 0 nor 1");
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d)
      if (d != c.attrs[0]) c.tile(c.result.shape[d], d).operand(0, d);
  }
  static constexpr void derive(derive_context& c) {
    const auto attrs = c.b.p.attrs(c.op);
    c.operands[0] =
        ops::cumsum(c.b, c.cotangent, static_cast<int>(attrs[0]), attrs[1] == 0, attrs[2] != 0);
  }
  static constexpr std::int64_t flops(const cost_context& c) { return c.result.shape.elements(); }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.number("dim");
    f.flag("reverse");
    f.flag("exclusive");
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::cumsum)
}  // namespace partita

namespace partita::ops {

constexpr value_id cumsum(builder& b, value_id x, int dim, bool reverse, bool exclusive) {
  return b.emit(def<op::cumsum>, {x}, {dim, reverse ? 1 : 0, exclusive ? 1 : 0});
}

}  // namespace partita::ops
