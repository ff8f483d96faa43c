/// Rewriting a device-local program: another order of its ops, ops joined into one, values
/// replaced.
#pragma once

#include <cstdint>

#include <partita/ir/copy.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// What becomes of a program. It is filled by a pass and executed by `rewritten`.
struct rewrite {
  vec<op_id> order;        ///< the ops that stay; of those joined the first
  vec<op_id> next;         ///< by op: the next of those joined into one, or -1
  vec<value_id> replaced;  ///< by value: what stands for it
  int changed = 0;

  constexpr explicit rewrite(const program& p) : next(p.ops.size(), -1) {
    order.reserve(p.ops.size());
    replaced.reserve(p.types.size());
    for (value_id v = 0; v < p.value_count(); ++v) replaced.push_back(v);
  }
};

/// Joined ops have one result each, and become one op with all of their operands and results.
/// `nest(q, o)` appends the nested programs of what was op `o`.
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
/// Nested programs are moved out of `p`.
constexpr program rewritten(program& p, const rewrite& w) {
  return rewritten(p, w, [&](program& q, op_id o) {
    const op_node& n = p.op(o);
    for (int r = 0; r < n.region_count; ++r)
      q.append_region(static_cast<program&&>(p.regions[n.region_begin + r]));
  });
}
/// Without nested programs.
constexpr program rewritten_alone(const program& p, const rewrite& w) {
  return rewritten(p, w, [](program&, op_id) {});
}
/// What is known by op, by op of the program that was rewritten.
constexpr vec<std::int64_t> rewritten(const vec<std::int64_t>& by_op, const rewrite& w) {
  vec<std::int64_t> now;
  now.reserve(w.order.size());
  for (op_id o : w.order) now.push_back(by_op[o]);
  return now;
}

/// Puts ops in order: each op that is asked for comes right after those of its operands that are
/// not there yet, depth first.
class ordering {
 public:
  /// Ops that are joined by `w` (`first`: by op, the first of its kind) stand together.
  constexpr ordering(const program& p, rewrite& w, const vec<op_id>& first)
      : p_(p), w_(w), first_(first), there_(p.ops.size(), 0) {}

  /// `then(o)` is called after each op that was added.
  template <class Then>
  constexpr void add(op_id o, const Then& then) {
    visit(o);
    while (!stack_.empty()) {
      frame& top = stack_.back();
      if (top.operand < p_.op(top.op).operand_count) {
        visit(p_.producer(p_.operand(top.op, top.operand++)));
      } else if (w_.next[top.op] >= 0) {
        top = {w_.next[top.op], 0};
      } else {
        const op_id done = first_[top.op];
        stack_.pop_back();
        w_.order.push_back(done);
        then(done);
      }
    }
  }
  constexpr void add(op_id o) {
    add(o, [](op_id) {});
  }
  /// Adds an op whose operands are there, unless it is there or on its way; gives whether it was.
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
  const vec<op_id>& first_;
  vec<char> there_;
  vec<frame> stack_;

  constexpr void visit(op_id o) {
    o = first_[o];
    if (there_[o]) return;
    there_[o] = 1;
    stack_.push_back({o, 0});
  }
};

/// The identity: every op by itself.
constexpr vec<op_id> each_op(const program& p) {
  vec<op_id> list;
  list.reserve(p.ops.size());
  for (op_id o = 0; o < p.op_count(); ++o) list.push_back(o);
  return list;
}

}  // namespace partita::spmd_detail
