/// Sums that a loop carries: a value that starts at zero and grows by one term per iteration.
#pragma once

#include <partita/support/vec.hpp>

#include <partita/core/core_program.hpp>
#include <partita/op/arithmetic.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/scan.hpp>
#include <partita/op/while_loop.hpp>

namespace partita {

/// An accumulation `sum = carried + added` in the body of a loop. `carried` starts at zero and has
/// no other use; `sum` is used only as the next iteration's `carried`. It may add, or subtract,
/// several terms, one after the other.
///
/// Law       The result is linear in the added terms, so a pending sum may be finished once after
///           the loop instead of in every iteration.
struct accumulation {
  vec<use> terms;  ///< in the order of the ops that add them
  op_id wire = -1;
  value_id start = -1, result = -1;
  bool own_start = true;  ///< false if the zero has other uses, too

  /// The last op, whose result is the sum.
  constexpr op_id last() const { return terms.back().op; }
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
      if (!core_detail::is_zero(p, a.start)) continue;
      a.own_start = only_use(a.start);
      const use end = {u.op, 1 - u.operand};
      while (only_use(carried)) {
        const use at = c.uses(carried)[0];
        const op_def& d = *p.op(at.op).def;
        if (at.op == end.op && at.operand == end.operand && !a.terms.empty()) {
          list.push_back(a);
          break;
        }
        if (c.nested.scope[at.op] != body ||
            !(d.adds || (d.id == def<op::subtract>.id && at.operand == 0)))
          break;
        a.terms.push_back({at.op, 1 - at.operand});
        carried = p.op(at.op).result;
      }
    }
  }
  return list;
}

}  // namespace partita
