/// optimization_barrier: values that stay together.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Passes its operands on together: nothing is moved across it.
///
/// Tile map  ([i], [j]) -> ([i], [j]), each dimension of each operand by itself
struct optimization_barrier {
  static constexpr std::string_view name = "optimization_barrier";
  static constexpr void infer(infer_context& c) {
    if (c.operands.empty()) return c.fail("S180", name, ": it has no results");
    c.result = c.operands[0];
    for (std::size_t i = 1; i < c.operands.size(); ++i) c.more.push_back(c.operands[i]);
  }
  static constexpr void tile_map(tile_map_context& c) {
    int rank = 0;
    for (const auto& t : c.operands) rank = t.shape.rank > rank ? t.shape.rank : rank;
    const std::int64_t room = c.passes(rank);
    for (int i = 0; i < static_cast<int>(c.operands.size()); ++i)
      for (int d = 0; d < c.operands[i].shape.rank; ++d) c.pass(room, i, d);
  }
  static constexpr void derive(derive_context& c) {
    for (std::size_t i = 0; i < c.operands.size(); ++i) c.operands[i] = c.cotangents[i];
  }
};

}  // namespace partita::op

namespace partita::ops {

constexpr value_id optimization_barrier(builder& b, span<const value_id> values) {
  return b.emit(def<op::optimization_barrier>, values, {});
}

}  // namespace partita::ops
