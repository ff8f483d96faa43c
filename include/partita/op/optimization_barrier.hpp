/// optimization_barrier: keeps values together.
#pragma once

#include <partita/ir/wires.hpp>
#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Base of ops that return operand i as result i and compute nothing.
struct passing_op {
  static constexpr fusion_kind fusion = fusion_kind::view;
  static constexpr op_role role = op_role::control;
  static constexpr bool passes_on = true;
  static constexpr std::int64_t bytes(const cost_context&) { return 0; }
  static constexpr void wires(const program& p, op_id o, wire_list& list) {
    for (int i = 0; i < p.op(o).result_count; ++i) list.add().operand(i).result(i);
  }
};

/// Returns its operands. No pass moves an op across it.
///
/// Operand i and result i have the same sharding, independent of other operands: there is one wire
/// each (see ir/wires.hpp), as for a nested program. So one axis can shard several operands.
///
/// Shapes    (i), (j), ... -> (i), (j), ...
struct optimization_barrier : passing_op {
  static constexpr std::string_view name = "optimization_barrier";
  static constexpr void infer(infer_context& c) {
    if (c.operands.empty()) return c.fail("S180", name, ": it has no results");
    c.result = c.operands[0];
    for (std::size_t i = 1; i < c.operands.size(); ++i) c.more.push_back(c.operands[i]);
  }
  static constexpr void derive(derive_context& c) {
    for (std::size_t i = 0; i < c.operands.size(); ++i) c.operands[i] = c.cotangents[i];
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::optimization_barrier)
}  // namespace partita

namespace partita::ops {

constexpr value_id optimization_barrier(builder& b, span<const value_id> values) {
  return b.emit(def<op::optimization_barrier>, values, {});
}

}  // namespace partita::ops
