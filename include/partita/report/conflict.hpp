/// Conflicts, and what would settle them, as text for people.
#pragma once

#include <string_view>

#include <partita/core/action_text.hpp>
#include <partita/core/trial.hpp>
#include <partita/schedule/partition.hpp>

namespace partita {

namespace detail {

/// `#tile<0>` or `#sum`: what becomes of the op's result.
constexpr void print_entry(text& out, const core_program& c, op_id o, int f) {
  const int dim = c.map.at(o, f).result_dim;
  if (dim != no_dim)
    out << "#tile<" << dim << '>';
  else
    out << "#sum";
}

/// The tactic that had the last part in evidence for a loop of an op over an axis.
constexpr int tactic_of(const core_program& c, op_id o, const evidence& e, int axis) {
  int tactic = 0;
  const auto look = [&](op_id other) {
    const loop* l = c.nest_of(other).find(axis);
    if (l != nullptr && l->tactic > tactic) tactic = l->tactic;
  };
  if (e.operand >= 0) {
    look(c.p.producer(c.p.operand(o, e.operand)));
    return tactic;
  }
  const op_node& n = c.p.op(o);
  for (int r = 0; r < n.result_count; ++r)
    for (const auto& u : c.uses(n.result + r)) look(u.op);
  return tactic;
}

constexpr void print_evidence(text& out, const core_program& c, const value_names& names, op_id o,
                              const evidence& e, int axis) {
  print_entry(out, c, o, e.factor);
  if (e.operand < 0)
    out << " from the uses of its result";
  else
    out << " from operand %" << names[c.p.operand(o, e.operand)];
  out << " by " << c.describe_tactic(tactic_of(c, o, e, axis));
}

/// Have two sub-axes something in common?
constexpr bool overlap(const sub_axis& a, const sub_axis& b) {
  return a == b || (a.axis == b.axis && a.pre < b.end() && b.pre < a.end());
}
/// Is a part of the axis of conflict `k` left open at its op?
constexpr bool is_left(const core_program& c, const conflict& k) {
  for (const auto& each : c.conflicts)
    if (each.op == k.op && overlap(each.where(), k.where())) return true;
  return false;
}
/// The loop of an op over an axis, or the major one over its parts; null if a part has none.
constexpr const loop* loop_over(const core_program& c, op_id o, const sub_axis& s) {
  const loop* first = nullptr;
  for (int a : c.mesh.parts_of(s)) {
    const loop* l = c.nest_of(o).find(a);
    if (l == nullptr) return nullptr;
    if (first == nullptr) first = l;
  }
  return first;
}

/// The `tile` actions that evidence of a conflict goes back to: from its operand, or from the uses
/// of its result, to ops that are sliced along the axis, until one that an action has tiled.
constexpr const action* origin_of(const core_program& c, const conflict& k, const evidence& e) {
  vec<char> seen(c.p.ops.size(), 0);
  vec<op_id> list;
  const int axis = c.mesh.parts_of(k.where()).axes[0];
  const auto visit = [&](op_id o) {
    if (!seen[o]) list.push_back(o);
    seen[o] = 1;
  };
  seen[k.op] = 1;
  if (e.operand >= 0) {
    visit(c.p.producer(c.p.operand(k.op, e.operand)));
  } else {
    const op_node& n = c.p.op(k.op);
    for (int r = 0; r < n.result_count; ++r)
      for (const auto& u : c.uses(n.result + r)) visit(u.op);
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const op_id o = list[i];
    const op_node& n = c.p.op(o);
    if (n.result_count == 0) continue;
    for (const auto& a : c.actions)
      if (a.kind == action_kind::tile && overlap(c.named.at(a.axis), k.where()) &&
          a.value == c.source_of(n.result) && c.made(n.result).dim_of(axis) >= 0)
        return &a;
    for (int j = 0; j < n.operand_count; ++j)
      if (c.required(o, j).dim_of(axis) >= 0) visit(c.p.producer(c.p.operand(o, j)));
    for (int r = 0; r < n.result_count; ++r)
      for (const auto& u : c.uses(n.result + r))
        if (c.required(u.op, u.operand).dim_of(axis) >= 0) visit(u.op);
  }
  return nullptr;
}

/// Applies one more action before all those of the schedule, to a program `c` without actions; has
/// the op then no conflict over the axis, and does every action still what it did?
constexpr bool try_first(const partitioned& p, const conflict& k, const action& first,
                         core_program& c) {
  const auto apply = [&](const action& a) {
    failure f;
    if (a.kind == action_kind::propagate) c.propagate();
    if (a.kind == action_kind::tile) f = c.tile(a.value, a.dim, a.axis, a.uneven);
    if (a.kind == action_kind::atomic) f = c.atomic(a.value, a.axis);
    return !f;
  };
  if (!apply(first)) return false;
  c.propagate();
  for (const auto& a : p.core.actions)
    if (!apply(a)) return false;
  return !is_left(c, k);
}

}  // namespace detail

/// One line: the op, the axis, the entries that match, where the evidence comes from, and the
/// tactic that had the last part in it.
constexpr text describe_conflict(const core_program& c, const value_names& names,
                                 const conflict& k) {
  text out;
  out << '%' << names[c.p.op(k.op).result] << " (" << c.p.op(k.op).def->name << ") along ";
  print_sub_axis(out, k.where(), c.mesh);
  out << ": ";
  if (k.kind == conflict_kind::indivisible) {
    out << "the axis has size " << k.size << ", which does not divide the "
        << c.local(k.op, k.first.factor) << " positions of ";
    detail::print_evidence(out, c, names, k.op, k.first, k.axis);
  } else {
    detail::print_evidence(out, c, names, k.op, k.first, k.axis);
    out << ", and ";
    detail::print_evidence(out, c, names, k.op, k.second, k.axis);
  }
  return out;
}

/// What settles a conflict: the later tactic that did, or the actions that would.
///
/// Tried are, as a tactic before all others: the `tile` that either evidence goes back to, alone
/// (so the order of tactics decides), and `atomic` on either operand or on the result. Each one
/// named has been applied to a fresh program and left no conflict there; behind it stands what the
/// op then has. What is not an input, tag or output needs a `tag` to be named by a tactic. Empty if
/// none of them helps. Cost: up to four times that of the schedule.
constexpr text settle(const partitioned& p, const conflict& k) {
  const core_program& c = p.core;
  text out;
  if (const loop* now = detail::loop_over(c, k.op, k.where()); now != nullptr) {
    out << "settled by tactic " << p.tactics[static_cast<std::size_t>(now->tactic)].name << ": ";
    detail::print_entry(out, c, k.op, now->factor);
    return out;
  }
  if (!detail::is_left(c, k)) return out << "settled by a later tactic: whole";
  if (c.p.is(k.op, op_role::tiling) || c.inserted(k.op) != padding_record::kind::none)
    return out;  // an op of the actions, not of the source
  named_axes axes = c.named;
  const int axis = axes.number(k.where());
  vec<action> candidates;
  const auto consider = [&](const action& a) {
    for (const auto& b : candidates)
      if (a.kind == b.kind && a.value == b.value && a.dim == b.dim) return;
    candidates.push_back(a);
  };
  const bool several = k.kind == conflict_kind::several;
  const evidence both[] = {k.first, several ? k.second : k.first};
  for (const auto& e : both)
    if (const action* a = detail::origin_of(c, k, e); several && a != nullptr) consider(*a);
  for (const auto& e : both) {
    const value_id v = e.operand < 0 ? c.p.op(k.op).result : c.p.operand(k.op, e.operand);
    consider({action_kind::atomic, c.source_of(v), -1, axis, 0});
  }
  const value_names names(flat_program(p.sharded()).p);
  core_program fresh(p.sharded(), axes.mesh);
  for (const auto& s : axes.parts) fresh.axis(s);
  core_trial trial(fresh);
  for (const auto& a : candidates) {
    core_program& tried = trial.restart();
    if (!detail::try_first(p, k, a, tried)) continue;
    out << (out.empty() ? "would be settled by " : ", or by ");
    print_action(out, a, names, axes);
    out << " in an earlier tactic (";
    const loop* l = detail::loop_over(tried, k.op, k.where());
    if (l == nullptr || l->factor == any_factor)
      out << "whole";
    else
      detail::print_entry(out, tried, k.op, l->factor);
    if (c.describe(a.value).view().front() == '%') out << "; it needs a tag";
    out << ')';
  }
  if (!several) {
    out << (out.empty() ? "would be settled by a size of " : ", or by a size of ");
    axes.print(out, axis);
    out << " that divides " << c.local(k.op, k.first.factor);
  }
  return out;
}

}  // namespace partita
