/// roll: rotates a dimension cyclically.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Computes result[..., (i + shift) mod n, ...] = x[..., i, ...]: elements that leave one end enter
/// at the other. Attributes: the dimension and the shift (any sign and size). (StableHLO writes it
/// as a concatenation of two slices, which hides the cyclic structure.)
///
/// Tile map  ([i, j~], dim=1) -> ([i, j])
/// Errors    S197 a dimension and a shift are needed
struct roll {
  static constexpr std::string_view name = "roll";
  static constexpr fusion_kind fusion = fusion_kind::loop;
  static constexpr int operand_count = 1;
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.number("dim");
    f.number("shift");
  }
  static constexpr void infer(infer_context& c) {
    c.result = c.operands[0];
    if (c.attrs.size() != 2)
      return c.fail("S197", "roll: ", c.attrs.size(), " attributes for ", c.operands[0],
                    "; a dimension and a shift are needed");
    if (c.attrs[0] < 0 || c.attrs[0] >= c.result.shape.rank)
      c.fail("S197", "roll: dimension ", c.attrs[0], " is out of range for ", c.operands[0]);
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) {
      c.tile(c.result.shape[d], d).operand(0, d);
      if (d == c.attrs[0]) c.halo();
    }
  }
  /// Returns the shift in [0, n), for n > 0.
  static constexpr std::int64_t places(std::int64_t shift, std::int64_t n) {
    return (shift % n + n) % n;
  }
  /// Reads the block `shift` positions before the shard, in the shorter direction. No local op
  /// remains.
  static constexpr void halo(halo_context& c) {
    const std::int64_t n = c.operand_extent(0), block = n / c.pieces;
    const std::int64_t up = places(c.attrs[1], n);
    c.ranges[0] = {2 * up > n ? n - up : -up, block, block, combiner::stack};
    c.attrs[1] = 0;
    c.identity = true;
  }
  static constexpr void derive(derive_context& c) {
    const auto attrs = c.b.p.attrs(c.op);
    const int dim = static_cast<int>(attrs[0]);
    // INT64_MIN cannot be negated.
    const std::int64_t n = c.b.type(c.cotangent).shape[dim];
    const std::int64_t shift = attrs[1] > INT64_MIN ? attrs[1] : n > 0 ? attrs[1] % n : 0;
    c.operands[0] = ops::roll(c.b, c.cotangent, dim, -shift);
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::roll)
}  // namespace partita

namespace partita::ops {

constexpr value_id roll(builder& b, value_id x, int dim, std::int64_t shift) {
  return b.emit(def<op::roll>, {x}, {dim, shift});
}

}  // namespace partita::ops
