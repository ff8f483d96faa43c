/// An order of execution that depends on the graph alone.
#pragma once

#include <partita/ir/program.hpp>

namespace partita {

/// The ops that the roots need, operands before users: depth first, operands left to right, roots
/// in the given order. C++ leaves open in which order the arguments of a call are evaluated, and so
/// in which order a model appends its ops; this order is the same on every compiler. Operand i
/// of op o does not count where `skips(o, i)`.
template <class Skips>
constexpr vec<op_id> canonical_order(const program& p, span<const value_id> roots,
                                     const Skips& skips) {
  struct frame {
    op_id op = -1;
    int next = 0;  // operand
  };
  vec<op_id> order;
  vec<char> seen(p.ops.size(), 0);
  vec<frame> stack;
  const auto visit = [&](value_id v) {
    const op_id o = p.producer(v);
    if (seen[o]) return;
    seen[o] = 1;
    stack.push_back({o, 0});
  };
  order.reserve(p.ops.size());
  for (value_id root : roots) {
    visit(root);
    while (!stack.empty()) {
      frame& top = stack.back();
      if (top.next < p.op(top.op).operand_count) {
        const int i = top.next++;
        if (!skips(top.op, i)) visit(p.operand(top.op, i));
      } else {
        order.push_back(top.op);
        stack.pop_back();
      }
    }
  }
  return order;
}
constexpr vec<op_id> canonical_order(const program& p, span<const value_id> roots) {
  return canonical_order(p, roots, [](op_id, int) { return false; });
}

}  // namespace partita
