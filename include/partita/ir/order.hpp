/// An execution order that depends only on the graph.
#pragma once

#include <partita/ir/program.hpp>

namespace partita {

/// Returns the ops that the roots need, operands before users: depth first, operands left to right,
/// roots in the given order. C++ does not specify the order in which the arguments of a call are
/// evaluated, so the order in which a model appends its ops depends on the compiler; this order
/// does not. Operand i of op o is ignored if `skips(o, i)`.
template <class Skips>
constexpr vec<op_id> canonical_order(const program& p, span<const value_id> roots,
                                     const Skips& skips) {
  struct frame {
    op_id op = -1;
    int next = 0, begin = 0, end = 0;  // range and next position in the program's list of operands
  };
  // (Few calls: every trace runs this.)
  const op_node* const ops = p.ops.data();
  const op_id* const producers = p.producers.data();
  const value_id* const operands = p.operand_list.data();
  vec<op_id> order;
  vec<char> seen_ops(p.ops.size(), 0);
  char* const seen = seen_ops.data();
  vec<frame> stack;
  const auto enter = [&](op_id o) {
    seen[o] = 1;
    const int begin = ops[o].operand_begin;
    stack.push_back({o, begin, begin, begin + ops[o].operand_count});
  };
  order.reserve(p.ops.size());
  for (value_id root : roots) {
    if (seen[producers[root]] == 0) enter(producers[root]);
    while (!stack.empty()) {
      frame& top = stack.back();
      op_id first = -1;  // the first operand's op that was not visited yet
      while (first < 0 && top.next < top.end) {
        PARTITA_WORK(1);
        const op_id o = producers[operands[top.next]];
        if (seen[o] == 0 && !skips(top.op, top.next - top.begin)) first = o;
        ++top.next;
      }
      if (first >= 0) {
        enter(first);
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
