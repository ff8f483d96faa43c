/// The shape rule and tile map shared by elementwise ops.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Returns the shape of an elementwise result. Operands have equal shapes, or rank 0: a scalar
/// combines with every element. (StableHLO requires an explicit broadcast.)
///
/// Errors    S103 shapes differ
constexpr shape elementwise_shape(infer_context& c, std::string_view name) {
  // Makes few calls, because most ops are elementwise.
  const tensor_type* const types = c.operands.data();
  const int count = static_cast<int>(c.operands.size());
  int at = 0;
  while (at < count && types[at].shape.rank == 0) ++at;
  if (at == count) return {};
  shape result = types[at].shape;
  while (++at < count) {
    const shape& other = types[at].shape;
    if (other.rank == 0) continue;
    bool same = result.rank == other.rank;
    for (int i = 0; same && i < result.rank; ++i) {
      if (result.extents[i] == other.extents[i]) continue;
      same = same_extent(result.extents[i], other.extents[i]);
      result.extents[i] = merge_extent(result.extents[i], other.extents[i]);
    }
    if (!same) {
      c.fail("S103", name, ": shapes ", result, " and ", other, " differ");
      return result;
    }
  }
  return result;
}

/// Checks that all operands from `from` on have one element type.
///
/// Errors    S102 element types differ
constexpr void same_elements(infer_context& c, std::string_view name, std::size_t from = 0) {
  const tensor_type* const types = c.operands.data();
  for (std::size_t i = from + 1, count = c.operands.size(); i < count; ++i)
    if (types[i].element != types[from].element)
      c.fail("S102", name, ": element types ", name_of(types[from].element), " and ",
             name_of(types[i].element), " differ; use convert");
}

// Checks of element types, by the first operand of an op.

constexpr void any_type(infer_context&, std::string_view) {}
/// Requires a floating-point type.
///
/// Errors    S104 not a floating-point type
constexpr void need_floating(infer_context& c, std::string_view name) {
  if (!is_floating(c.operands[0].element))
    c.fail("S104", name, ": element type ", name_of(c.operands[0].element),
           " is not a floating-point type");
}
/// Requires a number: any type but i1.
///
/// Errors    S104 not a number
constexpr void need_number(infer_context& c, std::string_view name) {
  if (c.operands[0].element == dtype::boolean)
    c.fail("S104", name, ": element type ", name_of(dtype::boolean), " is not a number");
}
/// Requires an integer type.
///
/// Errors    S120 not an integer type
constexpr void need_integer(infer_context& c, std::string_view name) {
  if (!is_integer(c.operands[0].element))
    c.fail("S120", name, ": element type ", name_of(c.operands[0].element),
           " is not an integer type");
}
/// Requires an integer type or i1.
///
/// Errors    S120 neither an integer type nor i1
constexpr void need_bits(infer_context& c, std::string_view name) {
  if (is_floating(c.operands[0].element))
    c.fail("S120", name, ": element type ", name_of(c.operands[0].element),
           " is neither an integer type nor i1");
}

/// Base of the elementwise ops: `([i, j], [i, j]) -> ([i, j])`. Rank-0 operands are not sliced.
struct elementwise_op {
  static constexpr bool elementwise = true;
  static constexpr void tile_map(tile_map_context& c) {
    const shape& result = c.result.shape;
    const tensor_type* const types = c.operands.data();
    const int count = static_cast<int>(c.operands.size());
    for (int d = 0; d < result.rank; ++d) {
      std::int8_t* const dims = c.tile(result.extents[d], d).operand_dims();
      for (int i = 0; i < count; ++i)
        if (types[i].shape.rank > 0) dims[i] = static_cast<std::int8_t>(d);
    }
  }
  static constexpr std::int64_t flops(const cost_context& c) { return c.result.shape.elements(); }
};

/// Base of ops whose operands and result have one element type, which `Check` validates.
///
/// Errors    S102 element types differ, S103 shapes differ, and those of `Check`
template <class Op, auto Check, int Operands>
struct one_type_op : elementwise_op {
  static constexpr int operand_count = Operands;
  static constexpr void infer(infer_context& c) {
    same_elements(c, Op::name);
    Check(c, Op::name);
    c.result = {c.operands[0].element, elementwise_shape(c, Op::name)};
  }
};

/// Base of unary ops that are piecewise constant: their derivative is zero.
template <class Op, auto Check>
struct step_op : one_type_op<Op, Check, 1> {
  static constexpr void derive(derive_context&) {}
};

/// Returns the cotangent of one operand of an elementwise op: the sum of `cotangent` if the operand
/// is a scalar.
constexpr value_id to_operand(derive_context& c, int operand, value_id cotangent) {
  const int rank = c.b.type(c.b.p.operand(c.op, operand)).shape.rank;
  const int have = c.b.type(cotangent).shape.rank;
  if (rank == have) return cotangent;
  std::int64_t dims[max_rank] = {};
  for (int i = 0; i < have; ++i) dims[i] = i;
  return ops::reduce(c.b, cotangent, combiner::add, {dims, static_cast<std::size_t>(have)});
}

}  // namespace partita::op
