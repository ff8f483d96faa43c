/// transpose: permutes dimensions.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Makes result dimension i from operand dimension permutation[i]. Attributes: the permutation.
///
/// Tile map  ([i, j]) -> ([j, i])
/// Errors    S108 not a permutation
struct transpose {
  static constexpr std::string_view name = "transpose";
  static constexpr fusion_kind fusion = fusion_kind::loop;
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    const shape& from = c.operands[0].shape;
    bool seen[max_rank] = {};
    bool good = static_cast<int>(c.attrs.size()) == from.rank;
    for (std::size_t i = 0; good && i < c.attrs.size(); ++i) {
      good = c.attrs[i] >= 0 && c.attrs[i] < from.rank && !seen[c.attrs[i]];
      if (good) seen[c.attrs[i]] = true;
    }
    if (!good) {
      text list;
      append_list(list, static_cast<int>(c.attrs.size()),
                  [&](int i) { list << c.attrs[static_cast<std::size_t>(i)]; });
      return c.fail("S108", "transpose: [", list, "] is not a permutation of the dimensions of ",
                    c.operands[0]);
    }
    c.result.element = c.operands[0].element;
    for (auto d : c.attrs) c.result.shape.push_back(from[static_cast<int>(d)]);
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d)
      c.tile(c.result.shape[d], d).operand(0, static_cast<int>(c.attrs[d]));
  }
  static constexpr void derive(derive_context& c) {
    const auto permutation = c.b.p.attrs(c.op);
    std::int64_t inverse[max_rank] = {};
    for (std::size_t i = 0; i < permutation.size(); ++i)
      inverse[permutation[i]] = static_cast<std::int64_t>(i);
    c.operands[0] = ops::transpose(c.b, c.cotangent, {inverse, permutation.size()});
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.rest("dims");
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::transpose)
}  // namespace partita

namespace partita::ops {

/// Emits a transpose. Returns the operand itself if the permutation is the identity.
constexpr value_id transpose(builder& b, value_id x, ints permutation) {
  bool identity = x >= 0 && static_cast<int>(permutation.size()) == b.type(x).shape.rank;
  for (std::size_t i = 0; i < permutation.size(); ++i)
    identity = identity && permutation[i] == static_cast<std::int64_t>(i);
  if (identity) return x;
  const value_id operands[] = {x};
  return b.emit(def<op::transpose>, operands, permutation);
}

}  // namespace partita::ops
