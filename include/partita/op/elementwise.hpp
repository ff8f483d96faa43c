/// What all elementwise ops share: shape rule and tile map.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Shape of an elementwise result. Operands have equal shapes, or rank 0: a scalar combines with
/// every element. (StableHLO asks for an explicit broadcast there.)
///
/// Errors    S103 shapes differ
constexpr shape elementwise_shape(infer_context& c, std::string_view name) {
  shape result;
  bool found = false;
  for (const auto& t : c.operands) {
    if (t.shape.rank == 0) continue;
    if (!found) {
      result = t.shape;
      found = true;
    } else if (!same_shape(result, t.shape)) {
      c.fail("S103", name, ": shapes ", result, " and ", t.shape, " differ");
      return result;
    } else {
      for (int i = 0; i < result.rank; ++i) result[i] = merge_extent(result[i], t.shape[i]);
    }
  }
  return result;
}

/// Errors    S102 element types differ
constexpr void same_elements(infer_context& c, std::string_view name, std::size_t from = 0) {
  for (std::size_t i = from + 1; i < c.operands.size(); ++i)
    if (c.operands[i].element != c.operands[from].element)
      c.fail("S102", name, ": element types ", name_of(c.operands[from].element), " and ",
             name_of(c.operands[i].element), " differ; use convert");
}

/// Errors    S104 element type not supported
constexpr void need_floating(infer_context& c, std::string_view name) {
  if (!is_floating(c.operands[0].element))
    c.fail("S104", name, ": element type ", name_of(c.operands[0].element),
           " is not a floating-point type");
}
constexpr void need_number(infer_context& c, std::string_view name) {
  if (c.operands[0].element == dtype::boolean)
    c.fail("S104", name, ": element type ", name_of(dtype::boolean), " is not a number");
}

/// Base of the elementwise ops: `([i, j], [i, j]) -> ([i, j])`, rank-0 operands unsliced.
struct elementwise_op {
  static constexpr bool elementwise = true;
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) {
      c.tile(c.result.shape[d], d);
      for (std::size_t i = 0; i < c.operands.size(); ++i)
        if (c.operands[i].shape.rank > 0) c.operand(static_cast<int>(i), d);
    }
  }
  static constexpr std::int64_t flops(const cost_context& c) { return c.result.shape.elements(); }
};

/// The cotangent of an operand of an elementwise op: summed if the operand was a scalar.
constexpr value_id to_operand(derive_context& c, int operand, value_id cotangent) {
  const int rank = c.b.type(c.b.p.operand(c.op, operand)).shape.rank;
  const int have = c.b.type(cotangent).shape.rank;
  if (rank == have) return cotangent;
  std::int64_t dims[max_rank] = {};
  for (int i = 0; i < have; ++i) dims[i] = i;
  return ops::reduce(c.b, cotangent, combiner::add, {dims, static_cast<std::size_t>(have)});
}

}  // namespace partita::op
