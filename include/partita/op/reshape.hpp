/// reshape: keeps the elements in row-major order and changes the shape.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Changes the shape of a tensor.
///
/// Tile map  4x12 -> 4x2x3x2: ([i, jkl]) -> ([i, j, k, l]), by the common refinement of both
///           shapes; dimensions without a common refinement cannot be sharded
/// Errors    S107 element counts differ
struct reshape {
  static constexpr std::string_view name = "reshape";
  static constexpr fusion_kind fusion = fusion_kind::view;
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    c.result = {c.operands[0].element, c.declared.shape};
    if (c.declared.shape.rank > max_rank) return;  // S100
    if (!same_extent(c.operands[0].shape.elements(), c.declared.shape.elements()))
      c.fail("S107", "reshape: ", c.operands[0], " has ", c.operands[0].shape.elements(),
             " elements; shape ", c.declared.shape, " has ", c.declared.shape.elements());
  }
  static constexpr void tile_map(tile_map_context& c) {
    const shape& from = c.operands[0].shape;
    const shape& to = c.result.shape;
    if (from.elements() == 0) return;
    int i = 0, j = 0;
    while (i < from.rank && j < to.rank) {
      // One group: the shortest runs of dimensions on both sides with equal products.
      std::int64_t left = from[i], right = to[j];
      int end_i = i + 1, end_j = j + 1;
      while (left != right) {
        if (left < right)
          left *= from[end_i++];
        else
          right *= to[end_j++];
      }
      if (end_i - i > 1 || end_j - j > 1) c.composed();
      std::int64_t a = from[i], r = to[j];
      while (i < end_i && j < end_j) {
        const std::int64_t common = greatest_common_divisor(a, r);
        if (common > 1 || (a == 1 && r == 1)) c.tile(common, j).operand(0, i);
        const bool stuck = common != a && common != r;
        a /= common;
        r /= common;
        if (stuck) break;
        if (a == 1 && ++i < end_i) a = from[i];
        if (r == 1 && ++j < end_j) r = to[j];
      }
      i = end_i;
      j = end_j;
    }
  }
  static constexpr void derive(derive_context& c) {
    c.operands[0] = ops::reshape(c.b, c.cotangent, c.b.type(c.b.p.operand(c.op, 0)).shape);
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::reshape)
}  // namespace partita

namespace partita::ops {

constexpr value_id reshape(builder& b, value_id x, const shape& to) {
  if (x < 0) return -1;
  if (b.type(x).shape == to) return x;
  return b.emit(def<op::reshape>, {x}, {}, tensor_type{b.type(x).element, to});
}

}  // namespace partita::ops
