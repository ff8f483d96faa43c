/// bitcast_convert: the same bits as another element type.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Reinterprets the bits of each element. When the element sizes differ, one wide element becomes
/// several narrow ones, lowest bits first, along a new last dimension; the reverse removes that
/// dimension. (StableHLO leaves the order of bits open; this is XLA's.)
///
/// Shapes    f32 (i, j) -> i32 (i, j), -> u8 (i, j, 4), -> f64 (i), where j = 2
/// Tile map  f32 -> i32: ([i, j]) -> ([i, j]); to a narrower type ([i, j]) -> ([i, j, 4]), to a
///           wider one ([i, 2]) -> ([i])
/// Errors    S142 the last dimension does not hold exactly one wider element, or one type is i1
struct bitcast_convert {
  static constexpr std::string_view name = "bitcast_convert";
  static constexpr fusion_kind fusion = fusion_kind::loop;
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    const tensor_type& from = c.operands[0];
    const dtype to = c.declared.element;
    c.result = {to, from.shape};
    if (from.element == dtype::boolean || to == dtype::boolean)
      return c.fail("S142", "bitcast_convert: ", partita::name_of(from.element), " to ",
                    partita::name_of(to), ": the bits of i1 are not defined; use convert");
    const std::int64_t have = size_of(from.element), want = size_of(to);
    if (have > want) c.result.shape.push_back(have / want);
    if (have >= want) return;
    shape& s = c.result.shape;
    if (s.rank == 0 || !same_extent(s[s.rank - 1], want / have))
      return c.fail("S142", "bitcast_convert: ", from, " to ", partita::name_of(to), ": ",
                    want / have, " elements make one; the last dimension needs this size");
    --s.rank;
    s.extents[s.rank] = 0;
  }
  static constexpr void tile_map(tile_map_context& c) {
    const shape& from = c.operands[0].shape;
    const shape& to = c.result.shape;
    for (int d = 0; d < from.rank && d < to.rank; ++d) c.tile(to[d], d).operand(0, d);
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::bitcast_convert)
}  // namespace partita

namespace partita::ops {

constexpr value_id bitcast_convert(builder& b, value_id x, dtype to) {
  if (x >= 0 && b.type(x).element == to) return x;
  return b.emit(def<op::bitcast_convert>, {x}, {}, tensor_type{to, {}});
}

}  // namespace partita::ops
