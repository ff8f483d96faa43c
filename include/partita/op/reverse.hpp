/// reverse: reverses the order of elements along some dimensions.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Computes result[..., i, ...] = x[..., n - 1 - i, ...] for each of the dimensions. Attributes:
/// the dimensions, strictly increasing (StableHLO allows any order).
///
/// Tile map  ([i, j~], dims=[1]) -> ([i, j])
/// Errors    S135 bad dimensions
struct reverse {
  static constexpr std::string_view name = "reverse";
  static constexpr fusion_kind fusion = fusion_kind::loop;
  static constexpr int operand_count = 1;
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.rest("dims");
  }
  static constexpr void infer(infer_context& c) {
    c.result = c.operands[0];
    std::int64_t previous = -1;
    for (auto d : c.attrs) {
      if (d <= previous || d >= c.result.shape.rank)
        return c.fail("S135", "reverse: dimension ", d, " is out of order or out of range for ",
                      c.operands[0]);
      previous = d;
    }
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) {
      bool reversed = false;
      for (int i = 0; i < c.attr_count; ++i) reversed = reversed || c.attrs[i] == d;
      c.tile(c.result.shape[d], d).operand(0, d);
      if (reversed) c.halo();
    }
  }
  /// Reverses the order of the shards: shard 0 reads the last one.
  static constexpr void halo(halo_context& c) {
    const std::int64_t block = c.operand_extent(0) / c.pieces;
    c.ranges[0] = {(c.pieces - 1) * block, -block, block};
  }
  static constexpr void derive(derive_context& c) {
    const auto attrs = c.b.p.attrs(c.op);
    const vec<std::int64_t> dims(attrs.data(), attrs.data() + attrs.size());
    c.operands[0] = ops::reverse(c.b, c.cotangent, {dims.data(), dims.size()});
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::reverse)
}  // namespace partita

namespace partita::ops {

/// Emits a reverse. Without dimensions, returns the operand.
constexpr value_id reverse(builder& b, value_id x, ints dims) {
  if (dims.empty()) return x;
  const value_id operands[] = {x};
  return b.emit(def<op::reverse>, operands, dims);
}

}  // namespace partita::ops
