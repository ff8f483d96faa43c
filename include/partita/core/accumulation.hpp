/// Sums that a loop carries: a value that starts at zero and grows by one term per iteration.
#pragma once

#include <partita/support/vec.hpp>

#include <partita/core/core_program.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/scan.hpp>
#include <partita/op/while_loop.hpp>

namespace partita {

/// An accumulation `sum = carried + added` in the body of a loop. `carried` starts at zero and has
/// no other use; `sum` is used only as the next iteration's `carried`.
///
/// Law       The result is linear in the added terms, so a pending sum may be finished once after
///           the loop instead of in every iteration.
struct accumulation {
  op_id add = -1, wire = -1;
  int added = 0;  ///< the index of the added term among the operands of `add`
  value_id start = -1, result = -1;
};

namespace core_detail {

/// True if every element of a value is zero: a zero constant, or a broadcast of one.
constexpr bool is_zero(const program& p, value_id v) {
  while (p.op(p.producer(v)).def->id == def<op::broadcast_in_dim>.id)
    v = p.operand(p.producer(v), 0);
  return p.is_zero(v);
}
/// True if the iterations of an op with nested programs pass values on to the next iteration.
constexpr bool is_loop(const op_def& d) {
  return d.id == def<op::scan>.id || d.id == def<op::while_loop>.id;
}

}  // namespace core_detail

/// Returns all accumulations in a program. Cost: linear in the wires of its loops.
constexpr vec<accumulation> accumulations(const core_program& c) {
  vec<accumulation> list;
  const program& p = c.p;
  const auto only_use = [&](value_id v) { return c.uses(v).size() == 1 && !c.returned[v]; };
  for (const auto& k : c.nested.controls) {
    if (!core_detail::is_loop(*p.op(k.marker).def)) continue;
    const int body = k.first_scope + k.scope_count - 1;
    for (const auto& u : k.operands) {
      const op_node& wire = p.op(u.op);
      if (wire.operand_count != 2) continue;
      accumulation a;
      a.wire = u.op;
      a.start = p.operand(u.op, u.operand);
      value_id carried = -1;
      bool seen = false;  // true if the loop's condition reads the carried value
      for (value_id v = wire.result; v < wire.result + wire.result_count; ++v) {
        const int scope = c.nested.value_scope[v];
        if (scope == body)
          carried = v;
        else if (scope == c.nested.scope[u.op])
          a.result = v;
        else
          seen = seen || !c.uses(v).empty() || c.returned[v];
      }
      if (seen || carried < 0 || a.result < 0) continue;
      const value_id sum = p.operand(u.op, 1 - u.operand);
      a.add = p.producer(sum);
      const bool from_zero = core_detail::is_zero(p, a.start) && only_use(a.start);
      if (!from_zero || !p.op(a.add).def->adds || c.nested.scope[a.add] != body || !only_use(sum) ||
          !only_use(carried))
        continue;
      a.added = p.operand(a.add, 0) == carried ? 1 : 0;
      if (p.operand(a.add, 1 - a.added) == carried) list.push_back(a);
    }
  }
  return list;
}

}  // namespace partita
