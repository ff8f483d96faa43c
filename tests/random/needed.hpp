/// Finds the ops of a program that its outputs need, by visiting all ops until nothing changes.
#pragma once

#include <vector>

#include <partita/ir/wires.hpp>

namespace random_test {

/// A program with its needed values, and the same for its nested programs.
struct needed_values {
  const partita::program* p;
  std::vector<char> needed;
  std::vector<std::vector<needed_values>> nested;  ///< by op

  explicit needed_values(const partita::program& of) : p(&of), needed(of.types.size(), 0) {
    for (partita::op_id o = 0; o < of.op_count(); ++o) {
      nested.emplace_back();
      for (const auto& r : of.regions_of(o)) nested.back().emplace_back(r);
    }
  }
  bool needs(partita::op_id o) const {
    bool any = false;
    for (int r = 0; r < p->op(o).result_count; ++r)
      any = any || needed[static_cast<std::size_t>(p->op(o).result + r)] != 0;
    return any;
  }
  /// Runs one round; false if nothing has changed.
  bool grow() {
    bool changed = false;
    for (partita::op_id o = p->op_count(); o-- > 0;) {
      if (!needs(o)) continue;
      auto& inside = nested[static_cast<std::size_t>(o)];
      if (inside.empty())
        for (const auto v : p->operands(o)) changed = mark(v) || changed;
      for (auto& r : inside) changed = r.grow() || changed;
      if (!inside.empty()) changed = grow_wires(o, inside) || changed;
    }
    return changed;
  }
  bool mark(partita::value_id v) {
    char& n = needed[static_cast<std::size_t>(v)];
    const bool fresh = n == 0;
    n = 1;
    return fresh;
  }
  /// Appends for each op, except parameters, whether it is needed.
  void list(std::vector<int>& to, bool around = true) const {
    for (partita::op_id o = 0; o < p->op_count(); ++o) {
      if (p->is(o, partita::op_role::parameter)) continue;
      const bool needed_here = around && needs(o);
      to.push_back(needed_here ? 1 : 0);
      for (const auto& r : nested[static_cast<std::size_t>(o)]) r.list(to, needed_here);
    }
  }

 private:
  bool grow_wires(partita::op_id o, std::vector<needed_values>& inside) {
    using end = partita::wire_end;
    bool changed = false;
    partita::wire_list wires;
    p->op(o).def->wires(*p, o, wires);
    for (const auto& w : wires.wires) {
      bool live = w.ends.size() == 1;
      for (const auto& e : w.ends) {
        if (e.kind == end::result)
          live = live || needed[static_cast<std::size_t>(p->op(o).result + e.index)] != 0;
        if (e.kind == end::input) {
          const auto& r = inside[static_cast<std::size_t>(e.region)];
          live = live || r.needed[static_cast<std::size_t>(r.p->inputs[e.index])] != 0;
        }
      }
      for (const auto& e : w.ends) {
        if (!live) continue;
        if (e.kind == end::operand) changed = mark(p->operand(o, e.index)) || changed;
        if (e.kind != end::output) continue;
        auto& r = inside[static_cast<std::size_t>(e.region)];
        changed = r.mark(r.p->outputs[e.index].value) || changed;
      }
    }
    return changed;
  }
};

inline std::vector<int> needed_ops(const partita::program& p) {
  needed_values all(p);
  for (const auto& out : p.outputs) all.mark(out.value);
  while (all.grow()) {
  }
  std::vector<int> list;
  all.list(list);
  return list;
}

}  // namespace random_test
