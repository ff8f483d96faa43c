/// Sums that a loop carries: a value that starts from zero and to which each iteration adds.
#pragma once

#include <partita/support/vec.hpp>

#include <partita/core/core_program.hpp>

namespace partita {

/// `sum = carried + added` in the body of a scan, where `carried` starts from zero and is used for
/// nothing else, and `sum` is only what the next iteration finds.
///
/// Law       the result is linear in all that is added: to finish a pending sum behind the loop
///           gives the same as to finish what is added in every iteration.
struct accumulation {
  op_id add = -1, wire = -1;
  int added = 0;  ///< which operand of `add` it is
  value_id start = -1, result = -1;
};

constexpr vec<accumulation> accumulations(const core_program& c) {
  vec<accumulation> list;
  const program& p = c.p;
  const auto only_use = [&](value_id v) { return c.uses(v).size() == 1 && !c.returned[v]; };
  for (const auto& k : c.nested.controls) {
    if (k.scope_count != 1) continue;
    for (const auto& u : k.operands) {
      const op_node& wire = p.op(u.op);
      if (wire.operand_count != 2 || wire.result_count != 2) continue;
      accumulation a;
      a.wire = u.op;
      a.start = p.operand(u.op, u.operand);
      const bool first_inside = c.nested.value_scope[wire.result] == k.first_scope;
      const value_id carried = wire.result + (first_inside ? 0 : 1);
      a.result = wire.result + (first_inside ? 1 : 0);
      const value_id sum = p.operand(u.op, 1 - u.operand);
      a.add = p.producer(sum);
      const bool from_zero = p.is_zero(a.start) && only_use(a.start);
      if (!from_zero || !p.op(a.add).def->adds || c.nested.scope[a.add] != k.first_scope ||
          !only_use(sum) || !only_use(carried))
        continue;
      a.added = p.operand(a.add, 0) == carried ? 1 : 0;
      if (p.operand(a.add, 1 - a.added) == carried) list.push_back(a);
    }
  }
  return list;
}

}  // namespace partita
