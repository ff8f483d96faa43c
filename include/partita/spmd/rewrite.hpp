/// Rewrites of a device-local program: reorders ops, joins several into one, and replaces values.
#pragma once

#include <cstdint>

#include <partita/ir/copy.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// A rewrite of a program. A pass fills it in, and `rewritten` applies it.
struct rewrite {
  vec<op_id> order;        ///< the ops that stay; for joined ops the first one
  vec<op_id> next;         ///< by op: the next op joined with it, or -1
  vec<value_id> replaced;  ///< by value: its replacement
  int changed = 0;

  constexpr explicit rewrite(const program& p) : next(p.ops.size(), -1) {
    order.reserve(p.ops.size());
    replaced.reserve(p.types.size());
    for (value_id v = 0; v < p.value_count(); ++v) replaced.push_back(v);
  }
};

/// Returns the rewritten program. Joined ops have one result each; they become one op with all of
/// their operands and results. `nest(q, o)` appends the nested programs of op `o`.
template <class Nest>
constexpr program rewritten(const program& p, const rewrite& w, const Nest& nest) {
  program q;
  program_copier copy(p, q);
  copy.reserve();
  for (op_id first : w.order) {
    for (op_id o = first; o >= 0; o = w.next[o])
      for (value_id v : p.operands(o)) copy.operand(w.replaced[v]);
    copy.append(first, p.attrs(first));
    for (op_id o = first; o >= 0; o = w.next[o]) copy.results(o);
    nest(q, first);
  }
  for (value_id v : p.inputs) copy.input(v);
  for (const auto& out : p.outputs) copy.output(out, w.replaced[out.value]);
  q.interface = p.interface;
  return q;
}
/// Returns the rewritten program; nested programs are moved out of `p`.
constexpr program rewritten(program& p, const rewrite& w) {
  return rewritten(p, w, [&](program& q, op_id o) {
    const op_node& n = p.op(o);
    for (int r = 0; r < n.region_count; ++r)
      q.append_region(static_cast<program&&>(p.regions[n.region_begin + r]));
  });
}
/// Returns the rewritten program without nested programs.
constexpr program rewritten_alone(const program& p, const rewrite& w) {
  return rewritten(p, w, [](program&, op_id) {});
}
/// Reorders per-op data to the order of the rewritten program.
constexpr vec<std::int64_t> rewritten(const vec<std::int64_t>& by_op, const rewrite& w) {
  vec<std::int64_t> now;
  now.reserve(w.order.size());
  for (op_id o : w.order) now.push_back(by_op[o]);
  return now;
}

/// Orders ops depth first: each requested op directly follows those of its operands that were not
/// listed yet.
class ordering {
 public:
  constexpr ordering(const program& p, rewrite& w) : p_(p), w_(w), there_(p.ops.size(), 0) {}

  /// Adds an op and its operands. Calls `then(o)` after each op added.
  template <class Then>
  constexpr void add(op_id o, const Then& then) {
    visit(o);
    while (!stack_.empty()) {
      frame& top = stack_.back();
      if (top.operand < p_.op(top.op).operand_count) {
        visit(p_.producer(p_.operand(top.op, top.operand++)));
      } else {
        const op_id done = top.op;
        stack_.pop_back();
        w_.order.push_back(done);
        then(done);
      }
    }
  }
  /// Adds an op whose operands are listed, unless it is listed or pending; returns true if it was
  /// added.
  constexpr bool append(op_id o) {
    if (there_[o]) return false;
    there_[o] = 1;
    w_.order.push_back(o);
    return true;
  }

 private:
  struct frame {
    op_id op = -1;
    int operand = 0;
  };
  const program& p_;
  rewrite& w_;
  vec<char> there_;
  vec<frame> stack_;

  constexpr void visit(op_id o) {
    if (there_[o]) return;
    there_[o] = 1;
    stack_.push_back({o, 0});
  }
};

/// Returns the identity order.
constexpr vec<op_id> each_op(const program& p) {
  vec<op_id> list;
  list.reserve(p.ops.size());
  for (op_id o = 0; o < p.op_count(); ++o) list.push_back(o);
  return list;
}

}  // namespace partita::spmd_detail
