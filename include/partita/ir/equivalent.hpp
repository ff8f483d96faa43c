/// Equality of programs up to the numbering of their values.
#pragma once

#include <partita/support/vec.hpp>

#include <partita/ir/program.hpp>

namespace partita {

/// True if both programs have the same inputs, the same outputs and the same ops in the same order,
/// with the same operands, attributes and names. The origins of derivatives and the positions of
/// parameters among the ops are ignored.
constexpr bool equivalent(const program& a, const program& b) {
  if (a.error || b.error || a.op_count() != b.op_count() || a.input_count() != b.input_count() ||
      a.output_count() != b.output_count())
    return false;
  vec<value_id> in_b(a.types.size(), -1);  // by value of a
  const auto pair = [&](value_id x, value_id y) {
    in_b[static_cast<std::size_t>(x)] = y;
    return a.type(x) == b.type(y) && a.name(x) == b.name(y);
  };
  for (std::size_t i = 0; i < a.inputs.size(); ++i)
    if (!pair(a.inputs[i], b.inputs[i])) return false;
  op_id q = 0;
  for (op_id o = 0; o < a.op_count(); ++o) {
    if (a.is(o, op_role::parameter)) continue;
    while (q < b.op_count() && b.is(q, op_role::parameter)) ++q;
    if (q == b.op_count()) return false;
    const op_node &x = a.op(o), &y = b.op(q);
    if (x.def->name != y.def->name || x.operand_count != y.operand_count ||
        x.result_count != y.result_count || x.region_count != y.region_count ||
        !same_elements(a.attrs(o), b.attrs(q)) || a.view(x.name) != b.view(y.name))
      return false;
    for (int i = 0; i < x.operand_count; ++i)
      if (in_b[static_cast<std::size_t>(a.operand(o, i))] != b.operand(q, i)) return false;
    for (int r = 0; r < x.result_count; ++r)
      if (!pair(x.result + r, y.result + r)) return false;
    for (int r = 0; r < x.region_count; ++r)
      if (!equivalent(a.region(o, r), b.region(q, r))) return false;
    ++q;
  }
  for (int i = 0; i < a.output_count(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (in_b[static_cast<std::size_t>(a.outputs[k].value)] != b.outputs[k].value ||
        a.output_name(i) != b.output_name(i))
      return false;
  }
  return true;
}

}  // namespace partita
