/// Conflicts and the actions that would settle them, as text.
#pragma once

#include <string_view>

#include <partita/core/action_text.hpp>
#include <partita/core/trial.hpp>
#include <partita/schedule/partition.hpp>
#include <partita/support/scanner.hpp>
#include <partita/support/syntax.hpp>

namespace partita {

namespace report_detail {

/// Prints `#tile<0>` or `#sum`: how the tile map entry `f` shards the op's result.
constexpr void print_entry(text& out, const core_program& c, op_id o, int f) {
  const int dim = c.map.at(o, f).result_dim;
  if (dim != no_dim)
    out << "#tile<" << dim << '>';
  else
    out << "#sum";
}

/// The last tactic that contributed to the evidence for a loop of an op over an axis.
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

/// True if the two sub-axes overlap.
constexpr bool overlap(const sub_axis& a, const sub_axis& b) {
  return a == b || (a.axis == b.axis && a.pre < b.end() && b.pre < a.end());
}
/// The loop of an op over an axis, or over the major part of the axis; null if the op has no loop
/// over one of its parts.
constexpr const loop* loop_over(const core_program& c, op_id o, const sub_axis& s) {
  const loop* first = nullptr;
  for (int a : c.mesh.parts_of(s)) {
    const loop* l = c.nest_of(o).find(a);
    if (l == nullptr) return nullptr;
    if (first == nullptr) first = l;
  }
  return first;
}

}  // namespace report_detail

/// Describes a conflict in one line: the op, the axis, the matching tile map entries, the origin of
/// the evidence, and the last tactic that contributed to it. With `scopes`, also where the model
/// wrote the op.
constexpr text describe_conflict(const core_program& c, const value_names& names, const conflict& k,
                                 const scope_list& scopes = {}) {
  text out;
  out << '%' << names[c.p.op(k.op).result] << " (" << c.p.op(k.op).def->name;
  print_place(out, scopes, c.p.op(k.op).marks);
  out << ") along ";
  print_sub_axis(out, k.where(), c.mesh);
  out << ": ";
  if (k.kind == conflict_kind::indivisible) {
    out << "the axis has size " << k.size << ", which does not divide the "
        << c.local(k.op, k.first.factor) << " positions of ";
    report_detail::print_evidence(out, c, names, k.op, k.first, k.axis);
  } else {
    report_detail::print_evidence(out, c, names, k.op, k.first, k.axis);
    out << ", and ";
    report_detail::print_evidence(out, c, names, k.op, k.second, k.axis);
  }
  return out;
}

namespace report_detail {

/// Finds the actions that settle the conflicts of a program, once for each conflict.
class settler {
 public:
  static constexpr int unlimited = 0x7fffffff;
  /// Searches for actions for at most `most_tried` conflicts.
  constexpr explicit settler(const partitioned& p, int most_tried = unlimited)
      : p_(p), c_(p.core), most_tried_(most_tried) {}

  /// Returns how conflict `k` was or would be settled; empty if no candidate settles it.
  constexpr text operator()(const conflict& k) {
    text out;
    if (const loop* now = loop_over(c_, k.op, k.where()); now != nullptr) {
      out << "settled by tactic " << p_.tactics[static_cast<std::size_t>(now->tactic)].name << ": ";
      print_entry(out, c_, k.op, now->factor);
      return out;
    }
    if (!is_left(k)) return out << "settled by a later tactic: replicated";
    if (c_.p.is(k.op, op_role::tiling) || c_.inserted(k.op) != padding_record::kind::none)
      return out;  // an op of the actions, not of the source
    for (const auto& each : known_)
      if (each.of == k) return each.how;
    if (static_cast<int>(known_.size()) >= most_tried_)
      return out << "actions that settle it are searched for " << most_tried_ << " conflicts only";
    known_.push_back({k, try_all(k)});
    return known_.back().how;
  }

 private:
  struct settled {
    conflict of;
    text how;
  };
  const partitioned& p_;
  const core_program& c_;
  int most_tried_;
  vec<settled> known_;
  core_program fresh_;  ///< the program without actions; built on first use
  /// By value: the index of its first `tile` action. By action: the next `tile` of the same value.
  vec<int> tiles_, next_tile_;

  /// True if the conflict still leaves some part of its axis open at its op.
  constexpr bool is_left(const conflict& k) const {
    bool left = false;
    c_.conflicts.for_each_of(
        k.op, [&](const conflict& each) { left = left || overlap(each.where(), k.where()); });
    return left;
  }
  constexpr void start() {
    if (!tiles_.empty()) return;
    fresh_ = core_program(p_.sharded(), c_.named.mesh, c_.state().options);
    for (const auto& s : c_.named.parts) fresh_.axis(s);
    tiles_.resize(c_.p.types.size(), -1);
    next_tile_.resize(c_.actions.size(), -1);
    for (std::size_t i = c_.actions.size(); i-- > 0;) {
      const action& a = c_.actions[i];
      if (a.kind != action_kind::tile) continue;
      next_tile_[i] = tiles_[a.value];
      tiles_[a.value] = static_cast<int>(i);
    }
  }

  constexpr text try_all(const conflict& k) {
    start();
    const int axis = fresh_.axis(k.where());
    vec<action> candidates;
    const auto consider = [&](const action& a) {
      for (const auto& b : candidates)
        if (a.kind == b.kind && a.value == b.value && a.dim == b.dim) return;
      candidates.push_back(a);
    };
    const bool several = k.kind == conflict_kind::several;
    const evidence both[] = {k.first, several ? k.second : k.first};
    for (const auto& e : both)
      if (const action* a = several ? origin_of(k, e) : nullptr; a != nullptr) consider(*a);
    for (const auto& e : both) {
      const value_id v = e.operand < 0 ? c_.p.op(k.op).result : c_.p.operand(k.op, e.operand);
      consider({action_kind::atomic, c_.source_of(v), -1, axis, 0});
    }
    text out;
    const value_names names(flat_program(p_.sharded()).p);
    core_trial trial(fresh_);
    for (const auto& a : candidates) {
      core_program& tried = trial.restart();
      if (!try_first(k, a, tried)) continue;
      out << (out.empty() ? "would be settled by " : ", or by ");
      print_advice(out, a, names);
      out << " as an earlier tactic (";
      const loop* l = loop_over(tried, k.op, k.where());
      if (l == nullptr || l->factor == any_factor)
        out << "replicated";
      else
        print_entry(out, tried, k.op, l->factor);
      out << ')';
    }
    if (!several) {
      out << (out.empty() ? "would be settled by a size of " : ", or by a size of ");
      fresh_.named.print(out, axis);
      out << " that divides " << c_.local(k.op, k.first.factor);
    }
    return out;
  }

  /// Prints an action as the user writes it: a tactic, and a tag in the model if the value has no
  /// name.
  constexpr void print_advice(text& out, const action& a, const value_names& names) const {
    const syntax s = c_.advice();
    text name = c_.describe(a.value);
    if (name.view().front() == '%') {
      const std::string_view printed = names[a.value];
      if (scanner::is_digit(printed.front()))
        name = concat('v', printed);
      else
        name = escaped(printed);
      if (s == syntax::specification)
        out << "a tag \"" << name << "\" on %" << names[a.value]
            << " (in JAX partita_jit.tag) and ";
      else
        out << "tag(\"" << name << "\", x) on %" << names[a.value] << " and ";
    }
    const text axis = c_.axis_in_tactic(fresh_.named.at(a.axis));
    text placement;  // (GCC 12 destroys the result of a conditional expression of texts too early.)
    if (a.kind == action_kind::tile)
      placement << a.dim;
    else
      placement << "replicated";
    print_manual(out, s, axis, name, placement,
                 a.uneven == uneven::pad      ? "pad"
                 : a.uneven == uneven::refuse ? "refuse"
                                              : "");
  }

  /// Finds the `tile` action that caused the evidence of a conflict. The search starts at the
  /// operand, or at the uses of the result, and follows ops that are sliced along the axis until it
  /// reaches one that an action tiled.
  constexpr const action* origin_of(const conflict& k, const evidence& e) const {
    vec<char> seen(c_.p.ops.size(), 0);
    vec<op_id> list;
    const int axis = c_.mesh.parts_of(k.where()).axes[0];
    const auto visit = [&](op_id o) {
      if (!seen[o]) list.push_back(o);
      seen[o] = 1;
    };
    seen[k.op] = 1;
    if (e.operand >= 0) {
      visit(c_.p.producer(c_.p.operand(k.op, e.operand)));
    } else {
      const op_node& n = c_.p.op(k.op);
      for (int r = 0; r < n.result_count; ++r)
        for (const auto& u : c_.uses(n.result + r)) visit(u.op);
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const op_id o = list[i];
      const op_node& n = c_.p.op(o);
      if (n.result_count == 0) continue;
      if (c_.produced_layout(n.result).dim_of(axis) >= 0)
        for (int a = tiles_[c_.source_of(n.result)]; a >= 0; a = next_tile_[a])
          if (overlap(c_.named.at(c_.actions[a].axis), k.where())) return &c_.actions[a];
      for (int j = 0; j < n.operand_count; ++j)
        if (c_.required_layout(o, j).dim_of(axis) >= 0) visit(c_.p.producer(c_.p.operand(o, j)));
      for (int r = 0; r < n.result_count; ++r)
        for (const auto& u : c_.uses(n.result + r))
          if (c_.required_layout(u.op, u.operand).dim_of(axis) >= 0) visit(u.op);
    }
    return nullptr;
  }

  /// Applies `first` and then all actions of the schedule to `c`, a program without actions.
  /// Returns true if the op then has no conflict over the axis and every action still has its
  /// effect.
  constexpr bool try_first(const conflict& k, const action& first, core_program& c) const {
    const auto apply = [&](const action& a) { return !c.apply(a, a.axis); };
    if (!apply(first)) return false;
    c.propagate();
    for (const auto& a : c_.actions) {
      if (a.tactic + 1 != c.tactic) c.start_tactic(a.tactic + 1);
      if (!apply(a)) return false;
    }
    for (const auto& each : c.conflicts)
      if (each.op == k.op && overlap(each.where(), k.where())) return false;
    return true;
  }
};

}  // namespace report_detail

/// Returns what settles a conflict: the later tactic that did, or the actions that would.
///
/// The candidates are the `tile` action that caused either piece of evidence and `atomic` on either
/// operand or on the result. Each is applied alone, before all other tactics, so that the order of
/// tactics decides. Every action in the text was applied to a fresh program and left no conflict
/// there; the op's layout then follows that action. The text uses tactics in the syntax of the
/// schedule; a value without a name gets a `tag` in the model. Empty if no candidate helps.
///
/// Cost      up to four times that of the schedule
constexpr text settle(const partitioned& p, const conflict& k) {
  return report_detail::settler(p)(k);
}

}  // namespace partita
