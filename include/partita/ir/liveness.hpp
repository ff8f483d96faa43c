/// Liveness of values: those that the outputs of a program need, nested programs included.
#pragma once

#include <partita/ir/wires.hpp>
#include <partita/support/vec.hpp>

namespace partita::ir_detail {

/// Finds the values that outputs are computed from, and the wires that these values pass through.
///
/// A wire is needed if one of its results is needed, or if needed values of a nested program use
/// one of its inputs. Then all values that enter through it are needed. Wires with a single end (a
/// predicate, a loop index) are needed whenever their op is.
///
/// Cost      linear in ops, those of nested programs included
class liveness {
  /// An op with nested programs.
 public:
  struct control {
    int scope = 0;  ///< of the op
    op_id op = -1;
    int first_scope = 0;  ///< of its nested programs, which are consecutive
    wire_list list;
    bool used = false;
    vec<char> live;          ///< by wire
    vec<int> operand_wires;  ///< by operand
  };
  /// A program; number 0 is the outermost one.
  struct scope {
    const program* p = nullptr;
    int control = -1;  ///< the op that it is nested in
    vec<char> needed;  ///< by value
    /// By value, for inputs of nested programs and results of ops that have nested programs.
    vec<int> wire_of;
    vec<int> control_of;    ///< by op, or -1; empty if no op has nested programs
    vec<int> output_wires;  ///< by output, of a nested program
  };
  vec<scope> scopes;
  vec<control> controls;
  std::int64_t visits = 0;  ///< values and wires that were found to be needed

  constexpr explicit liveness(const program& p) {
    enter(p, -1);
    for (int s = 0; s < static_cast<int>(scopes.size()); ++s) find_controls(s);
    for (const auto& out : p.outputs) need(0, out.value);
    while (!work_.empty()) {
      const item next = work_.back();
      work_.pop_back();
      follow(next.scope, next.value);
    }
  }

  /// Returns the index in `controls` of op `o`, or -1 if it has no nested programs.
  constexpr int control_of(int s, op_id o) const {
    return scopes[s].control_of.empty() ? -1 : scopes[s].control_of[o];
  }
  /// True if op `o` of a program computes a value that is needed.
  constexpr bool needs(int s, op_id o) const {
    const op_node& n = scopes[s].p->op(o);
    for (int r = 0; r < n.result_count; ++r)
      if (scopes[s].needed[n.result + r]) return true;
    return false;
  }
  /// True if some op or wire is not needed. Inputs of the top-level program do not count.
  constexpr bool any_dead() const {
    for (int s = 0; s < static_cast<int>(scopes.size()); ++s)
      for (op_id o = 0; o < scopes[s].p->op_count(); ++o)
        if (!scopes[s].p->is(o, op_role::parameter) && !needs(s, o)) return true;
    for (const control& k : controls)
      for (const char live : k.live)
        if (!live) return true;
    return false;
  }

 private:
  struct item {
    int scope = 0;
    value_id value = -1;
  };
  vec<item> work_;

  constexpr void enter(const program& p, int control) {
    scope s;
    s.p = &p;
    s.control = control;
    s.needed.resize(p.types.size(), 0);
    s.wire_of.resize(p.types.size(), -1);
    if (!p.regions.empty()) s.control_of.resize(p.ops.size(), -1);
    if (control >= 0) s.output_wires.resize(p.outputs.size(), -1);
    scopes.push_back(static_cast<scope&&>(s));
  }
  constexpr void find_controls(int s) {
    const program& p = *scopes[s].p;
    if (p.regions.empty()) return;
    for (op_id o = 0; o < p.op_count(); ++o) {
      if (p.op(o).region_count == 0) continue;
      const int number = static_cast<int>(controls.size());
      scopes[s].control_of[o] = number;
      control k;
      k.scope = s;
      k.op = o;
      k.first_scope = static_cast<int>(scopes.size());
      p.op(o).def->wires(p, o, k.list);
      k.live.resize(k.list.wires.size(), 0);
      k.operand_wires.resize(static_cast<std::size_t>(p.op(o).operand_count), -1);
      for (const auto& r : p.regions_of(o)) enter(r, number);
      for (int w = 0; w < static_cast<int>(k.list.wires.size()); ++w)
        for (const auto& e : k.list.wires[w].ends) attach(k, w, e);
      controls.push_back(static_cast<control&&>(k));
    }
  }
  constexpr void attach(control& k, int w, const wire_end& e) {
    const op_node& n = scopes[k.scope].p->op(k.op);
    if (e.kind == wire_end::operand) {
      k.operand_wires[e.index] = w;
    } else if (e.kind == wire_end::result) {
      scopes[k.scope].wire_of[n.result + e.index] = w;
    } else {
      scope& inner = scopes[k.first_scope + e.region];
      if (e.kind == wire_end::output)
        inner.output_wires[e.index] = w;
      else
        inner.wire_of[inner.p->inputs[e.index]] = w;
    }
  }

  constexpr void need(int s, value_id v) {
    if (scopes[s].needed[v]) return;
    scopes[s].needed[v] = 1;
    ++visits;
    work_.push_back({s, v});
  }
  constexpr void follow(int s, value_id v) {
    const program& p = *scopes[s].p;
    const op_id o = p.producer(v);
    if (p.is(o, op_role::parameter)) {
      if (s > 0) need_wire(scopes[s].control, scopes[s].wire_of[v]);
    } else if (const int k = control_of(s, o); k >= 0) {
      need_op(k);
      need_wire(k, scopes[s].wire_of[v]);
    } else {
      for (value_id each : p.operands(o)) need(s, each);
    }
  }
  constexpr void need_op(int k) {
    if (controls[k].used) return;
    controls[k].used = true;
    for (int w = 0; w < static_cast<int>(controls[k].live.size()); ++w)
      if (controls[k].list.wires[w].ends.size() == 1) need_wire(k, w);
  }
  constexpr void need_wire(int k, int w) {
    const control& c = controls[k];
    if (c.live[w]) return;
    controls[k].live[w] = 1;
    ++visits;
    for (const auto& e : c.list.wires[w].ends) {
      if (e.kind == wire_end::operand) need(c.scope, scopes[c.scope].p->operand(c.op, e.index));
      if (e.kind != wire_end::output) continue;
      const int inner = c.first_scope + e.region;
      need(inner, scopes[inner].p->outputs[e.index].value);
    }
  }
};

}  // namespace partita::ir_detail
