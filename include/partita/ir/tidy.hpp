/// Removal of ops that no output needs, in canonical order or in program order.
#pragma once

#include <partita/ir/copy.hpp>
#include <partita/ir/liveness.hpp>
#include <partita/ir/order.hpp>
#include <partita/ir/source_ids.hpp>

namespace partita {

/// The results that remain of an op that lost some.
struct kept_results {
  int number = -1;  ///< of the op, as op_marks::source
  vec<int> results;
};

namespace ir_detail {

/// Copies a program in canonical order: inputs first, then the ops that the outputs need.
///
/// The last output comes first: a training step that returns its loss last runs forward, and then
/// backward from the last parameters to the first.
template <class IsLive, class Skips, class CopyOp>
constexpr program in_canonical_order(const program& p, const IsLive& is_live, const Skips& skips,
                                     const CopyOp& copy_op) {
  program q;
  program_copier copy(p, q);
  copy.reserve();
  vec<value_id> roots;
  for (int i = p.output_count(); i-- > 0;)
    if (is_live(wire_end::output, i)) roots.push_back(p.outputs[i].value);
  for (int i = 0; i < p.input_count(); ++i) {
    if (!is_live(wire_end::input, i)) continue;
    copy.op(p.producer(p.inputs[i]));
    copy.input(p.inputs[i]);
  }
  const vec<op_id> order = canonical_order(p, roots, skips);
  const op_id* const ops = order.data();
  for (std::size_t i = 0, count = order.size(); i < count; ++i)
    if (!p.is(ops[i], op_role::parameter)) copy_op(q, copy, ops[i]);
  for (int i = 0; i < p.output_count(); ++i)
    if (is_live(wire_end::output, i)) copy.output(p.outputs[i], p.outputs[i].value);
  return q;
}

/// Copies a program in program order: inputs, and the ops that the outputs need.
template <class IsLive, class CopyOp>
constexpr program in_own_order(const program& p, const liveness& live, int s, const IsLive& is_live,
                               const CopyOp& copy_op) {
  program q;
  program_copier copy(p, q);
  copy.reserve();
  vec<char> is_input(p.ops.size(), 0);
  for (int i = 0; i < p.input_count(); ++i)
    if (is_live(wire_end::input, i)) is_input[p.producer(p.inputs[i])] = 1;
  for (op_id o = 0; o < p.op_count(); ++o)
    if (p.is(o, op_role::parameter) ? is_input[o] != 0 : live.needs(s, o)) copy_op(q, copy, o);
  for (int i = 0; i < p.input_count(); ++i)
    if (is_live(wire_end::input, i)) copy.input(p.inputs[i]);
  for (int i = 0; i < p.output_count(); ++i)
    if (is_live(wire_end::output, i)) copy.output(p.outputs[i], p.outputs[i].value);
  return q;
}

/// Copies programs without the wires that nothing needs.
class tidying {
 public:
  constexpr explicit tidying(const liveness& live, bool canonical = true)
      : live_(live), canonical_(canonical) {}

  constexpr const vec<kept_results>& kept() const { return kept_; }

  constexpr program run(int s) {
    const liveness::scope& here = live_.scopes[s];
    const program& p = *here.p;
    const auto is_live = [&](wire_end::kind_type kind, int i) {
      if (s == 0) return true;
      const int w = kind == wire_end::input ? here.wire_of[p.inputs[i]] : here.output_wires[i];
      return live_.controls[here.control].live[w] != 0;
    };
    const auto skips = [&](op_id o, int i) {
      const int k = live_.control_of(s, o);
      return k >= 0 && !live_.controls[k].live[live_.controls[k].operand_wires[i]];
    };
    const auto copy_op = [&](program& q, program_copier& copy, op_id o) {
      if (const int k = live_.control_of(s, o); k >= 0)
        add_control(q, copy, live_.controls[k]);
      else
        copy.op(o);
    };
    // (No conditional operator: GCC 12 would end the life of its result in constant evaluation.)
    if (canonical_) return in_canonical_order(p, is_live, skips, copy_op);
    return in_own_order(p, live_, s, is_live, copy_op);
  }

 private:
  const liveness& live_;
  bool canonical_;
  vec<kept_results> kept_;

  constexpr void add_control(program& q, program_copier& copy, const liveness::control& k) {
    const program& p = *live_.scopes[k.scope].p;
    const op_node& n = p.op(k.op);
    vec<char> operands, results;
    for (int w : k.operand_wires) operands.push_back(k.live[w]);
    for (value_id v = n.result; v < n.result + n.result_count; ++v)
      results.push_back(k.live[live_.scopes[k.scope].wire_of[v]]);
    const auto given = p.attrs(k.op);
    vec<std::int64_t> attrs(given.begin(), given.end());
    n.def->pruned(attrs, operands, results);
    for (int i = 0; i < n.operand_count; ++i)
      if (operands[i]) copy.operand(p.operand(k.op, i));
    copy.append(k.op, attrs);
    vec<int> kept;
    for (int r = 0; r < n.result_count; ++r) {
      if (!results[r]) continue;
      copy.result(n.result + r);
      kept.push_back(r);
    }
    if (static_cast<int>(kept.size()) < n.result_count)
      kept_.push_back({n.marks.source, static_cast<vec<int>&&>(kept)});
    for (int r = 0; r < n.region_count; ++r) q.append_region(run(k.first_scope + r));
  }
};

/// Returns the program without ops that its outputs do not need, in canonical order, nested
/// programs included. All inputs remain and come first. Its ops are numbered.
///
/// Cost      linear in ops, those of nested programs included
constexpr program tidy(const program& p) {
  program q;
  if (p.regions.empty())
    q = in_canonical_order(
        p, [](wire_end::kind_type, int) { return true; }, [](op_id, int) { return false; },
        [](program&, program_copier& copy, op_id o) { copy.op(o); });
  else
    q = tidying(liveness(p)).run(0);
  q.error = p.error;
  if (!p.scopes.empty() || p.scopes.any_places()) q.scopes = p.scopes;
  number_ops(q);
  return q;
}

/// True if every op of a program without nested programs has a result that is used.
constexpr bool all_used(const program& p) {
  vec<char> used(p.types.size(), 0);
  for (const auto& out : p.outputs) used[out.value] = 1;
  for (op_id o = p.op_count(); o-- > 0;) {
    const op_node& n = p.ops[o];
    bool any = n.def->role == op_role::parameter;
    for (int r = 0; r < n.result_count && !any; ++r) any = used[n.result + r] != 0;
    if (!any) return false;
    for (int i = 0; i < n.operand_count; ++i) used[p.operand_list[n.operand_begin + i]] = 1;
  }
  return true;
}

/// Returns the number of ops other than inputs, those of nested programs included.
constexpr int computing_ops(const program& p) {
  int n = 0;
  for (const op_node& o : p.ops) n += o.def->role != op_role::parameter;
  for (const program& r : p.regions) n += computing_ops(r);
  return n;
}

}  // namespace ir_detail

/// The result of `without_dead_code`.
struct live_program {
  program p;  ///< without dead code; empty if the program has none
  bool changed = false;
  int removed = 0;         ///< number of removed ops; inputs of nested programs do not count
  vec<kept_results> kept;  ///< for each op that lost results, in reading order
};

/// Removes dead code; the remaining ops keep their order. A value is dead if no output of the
/// program is computed from it: ops, values that a loop carries only for themselves, stacked
/// results, unused results of branches and calls, and the operands of loops, branches and calls
/// that only these need. Inputs and outputs remain. No op has an effect other than its results. An
/// optimization_barrier that passes on a live value keeps all of its operands.
///
/// Numbers of ops (op_marks::source), labels, scopes and the interface do not change.
///
/// Cost      linear in ops, those of nested programs included
constexpr live_program without_dead_code(const program& p) {
  live_program out;
  if (p.error || (p.regions.empty() && ir_detail::all_used(p))) return out;
  const ir_detail::liveness live(p);
  if (!live.any_dead()) return out;
  ir_detail::tidying work(live, false);
  program q = work.run(0);
  q.labels = p.labels;
  out.kept = work.kept();
  for (const auto& each : out.kept) q.labels.keep_results(each.number, each.results);
  q.scopes = p.scopes;
  out.changed = true;
  out.removed = ir_detail::computing_ops(p) - ir_detail::computing_ops(q);
  q.interface = p.interface;
  out.p = static_cast<program&&>(q);
  return out;
}

}  // namespace partita
