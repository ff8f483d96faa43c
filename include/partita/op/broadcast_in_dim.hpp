/// broadcast_in_dim: repeats a tensor along new dimensions, and along dimensions of size 1.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Maps operand dimension i to result dimension dims[i]; the other result dimensions are new.
/// Attributes: dims, strictly increasing (StableHLO allows any order; transpose first).
///
/// Tile map  ([i, 1], dims=[0, 2]) -> ([i, j, k])
/// Errors    S109 bad dimensions, or an extent that is neither 1 nor that of the result
struct broadcast_in_dim {
  static constexpr std::string_view name = "broadcast_in_dim";
  static constexpr fusion_kind fusion = fusion_kind::loop;
  static constexpr bool repeats = true;
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    const shape& from = c.operands[0].shape;
    const shape& to = c.declared.shape;
    c.result = {c.operands[0].element, to};
    if (to.rank > max_rank) return;  // S100
    if (static_cast<int>(c.attrs.size()) != from.rank)
      return c.fail("S109", "broadcast_in_dim: ", c.attrs.size(), " dimensions for an operand ",
                    c.operands[0]);
    std::int64_t previous = -1;
    for (int i = 0; i < from.rank; ++i) {
      const std::int64_t d = c.attrs[static_cast<std::size_t>(i)];
      if (d <= previous || d >= to.rank)
        return c.fail("S109", "broadcast_in_dim: dimension ", d,
                      " is out of order or out of range for the result shape ", to);
      if (!same_extent(from[i], to[static_cast<int>(d)]) && from[i] != 1)
        return c.fail("S109", "broadcast_in_dim: dimension ", i, " of ", c.operands[0],
                      " does not fit in dimension ", d, " of the result shape ", to);
      previous = d;
    }
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) {
      c.tile(c.result.shape[d], d);
      for (int i = 0; i < c.attr_count; ++i)
        if (c.attrs[i] == d && c.operands[0].shape[i] == c.result.shape[d]) c.operand(0, i);
    }
  }
  static constexpr void derive(derive_context& c) {
    const auto dims = c.b.p.attrs(c.op);
    const tensor_type from = c.b.type(c.b.p.operand(c.op, 0));
    const tensor_type to = c.b.type(c.cotangent);
    std::int64_t summed[max_rank] = {};
    std::size_t count = 0;
    bool kept_size_one = false;
    for (int d = 0; d < to.shape.rank; ++d) {
      bool same = false;
      for (std::size_t i = 0; i < dims.size(); ++i)
        if (dims[i] == d) {
          same = from.shape[static_cast<int>(i)] == to.shape[d];
          if (!same) kept_size_one = true;
        }
      if (!same) summed[count++] = d;
    }
    value_id g = ops::reduce(c.b, c.cotangent, combiner::add, {summed, count});
    if (kept_size_one) g = ops::reshape(c.b, g, from.shape);
    c.operands[0] = g;
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.rest("dims");
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::broadcast_in_dim)
}  // namespace partita

namespace partita::ops {

constexpr value_id broadcast_in_dim(builder& b, value_id x, const shape& to, ints dims) {
  if (x < 0) return -1;
  if (b.type(x).shape == to) return x;
  const value_id operands[] = {x};
  return b.emit(def<op::broadcast_in_dim>, operands, dims, tensor_type{b.type(x).element, to});
}

}  // namespace partita::ops
