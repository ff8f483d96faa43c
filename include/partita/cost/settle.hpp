/// Conflicts between layouts that one tactic gives at once: the choice that costs least.
#pragma once

#include <cstdint>

#include <partita/core/core_program.hpp>
#include <partita/spmd/layout_changes.hpp>
#include <partita/support/checked.hpp>

namespace partita {

namespace cost_detail {

/// The flops of a device and the bytes that it sends, updated loop by loop; see layout_changes.
class work_account {
 public:
  constexpr explicit work_account(const core_program& c) : c_(c) {}

  constexpr std::int64_t flops() const { return flops_.value(); }
  constexpr std::int64_t bytes() const { return bytes_.value(); }

  // ---- Callbacks of layout_changes --------------------------------------------------------------

  constexpr void clear() {
    flops_ = bytes_ = {};
    all_flops_.clear();
    of_op_.clear();
    of_value_.clear();
    of_operand_.clear();
  }
  constexpr void grow() {
    of_value_.resize(c_.p.types.size(), 0);
    of_operand_.resize(c_.p.operand_list.size(), 0);
    of_op_.resize(c_.p.ops.size(), 0);
    for (op_id o = static_cast<op_id>(all_flops_.size()); o < c_.p.op_count(); ++o)
      all_flops_.push_back(flops_of(o));
  }
  template <class Finish>
  constexpr void value(value_id v, const Finish& finish) {
    std::int64_t sent = 0, now = bytes_of(v, c_.produced_layout(v));
    finish([&](const collective& what, const layout& after) {
      sent = saturating_add(sent, sends(what, now));
      now = bytes_of(v, after);
    });
    set(bytes_, of_value_[v], sent, c_.nested.value_scope[v]);
    have_.resize(c_.p.types.size(), 0);
    have_[v] = now;
  }
  template <class Bring>
  constexpr void operand(int place, value_id v, const Bring& bring) {
    std::int64_t sent = 0, now = have_[v];
    bring([&](const reshard_step& s) {
      const std::int64_t after = bytes_of(s.of >= 0 ? s.of : v, s.after);
      sent = saturating_add(sent, sends(s.what, s.of >= 0 ? after : now));
      now = after;
    });
    set(bytes_, of_operand_[place], sent, c_.nested.value_scope[v]);
  }
  constexpr void op(op_id o, const spmd_detail::local_layouts&) {
    std::int64_t pieces = 1;
    for (const loop& l : c_.nest_of(o))
      if (l.factor != any_factor) pieces *= c_.size(o, l.axis);
    set(flops_, of_op_[o], all_flops_[o] / pieces, c_.nested.scope[o]);
  }

 private:
  const core_program& c_;
  level flops_, bytes_;
  vec<std::int64_t> all_flops_;  ///< by op: unpartitioned
  vec<std::int64_t> of_op_, of_value_, of_operand_, have_;

  constexpr void set(level& sum, std::int64_t& before, std::int64_t now, int scope) {
    now = saturating_multiply(now, c_.nested.scopes[scope].trips);
    if (before == now) return;
    sum.remove(before);
    sum.add(now);
    before = now;
  }
  constexpr std::int64_t sends(const collective& what, std::int64_t bytes) const {
    return what.communicates() ? bytes_sent(what.kind, what.members(c_.mesh), bytes) : 0;
  }
  constexpr std::int64_t bytes_of(value_id v, const layout& l) const {
    return tensor_type{c_.p.types[v].element, l.local(c_.p.types[v].shape, c_.mesh)}.bytes();
  }
  constexpr std::int64_t flops_of(op_id o) const {
    const op_node& n = c_.p.ops[o];
    if (n.result_count == 0 || n.def->role != op_role::compute) return 0;
    const vec<tensor_type> operands = c_.operand_types(o);
    cost_context c{operands, c_.p.types[n.result], c_.p.attrs(o)};
    vec<tensor_type> more;
    for (int r = 1; r < n.result_count; ++r) more.push_back(tensor_type(c_.p.types[n.result + r]));
    c.more = {more.data(), more.size()};
    return n.def->flops(c);
  }
};

/// See settle_conflicts.
class conflict_settler {
 public:
  constexpr explicit conflict_settler(core_program& c)
      : c_(c),
        root_(c),
        tried_(c),
        account_(tried_),
        changes_(tried_, passes{}, account_),
        small_(c.p.op_count() <= 2000) {}

  constexpr void run() {
    changes_.update(vec<op_id>());
    find_order();
    settle_all(small_ ? 3 : c_.conflicts.size() <= 1000 ? 2 : 0);
    for (std::size_t i = c_.settled.size(); i < root_.settled.size(); ++i) {
      const settled_conflict& each = root_.settled[i];
      c_.settle(each.what.op, c_.mesh.parts_of(each.what.where()).axes[0], each.factor);
    }
  }

 private:
  struct figures {
    std::int64_t flops = -1, bytes = 0;
    constexpr bool less_than(const figures& other) const {
      if (other.flops < 0) return true;
      return flops != other.flops ? flops < other.flops : bytes < other.bytes;
    }
  };
  struct choice {
    op_id op = -1;
    int axis = -1, factor = any_factor;
  };
  struct source {
    value_id value = -1;
    int axis = -1;
  };
  core_program& c_;
  core_program root_;                  ///< c_, with the choices made so far
  core_program tried_;                 ///< root_, with those of `path_`
  cost_detail::work_account account_;  ///< of tried_
  layout_changes<cost_detail::work_account> changes_;
  bool small_;
  vec<choice> path_;
  vec<int> seen_;  ///< by op: the number of the last search that visited it
  int searches_ = 0;
  static constexpr std::size_t most_on_way = 1000;

  constexpr figures now() const { return {account_.flops(), account_.bytes()}; }
  /// Makes a choice on the copy.
  constexpr void take(const choice& what) {
    const std::size_t from = tried_.changes.size();
    tried_.settle(what.op, what.axis, what.factor);
    look_at(from);
  }
  constexpr void look_at(std::size_t from) {
    vec<op_id> changed;
    for (std::size_t i = from; i < tried_.changes.size(); ++i)
      changed.push_back(op_id{tried_.changes[i]});
    changes_.update(changed);
  }
  /// Undoes everything on the copy since program `base`.
  constexpr void undo_to(const core_program& base) {
    vec<op_id> changed;
    for (std::size_t i = base.changes.size(); i < tried_.changes.size(); ++i)
      changed.push_back(op_id{tried_.changes[i]});
    tried_.undo_to(base.state());
    changes_.update(changed);
  }

  // ---- Choices for single ops -------------------------------------------------------------------

  /// Settles all conflicts of the program, each with a view of the next `ahead` ones.
  constexpr void settle_all(int ahead) {
    int at = 0;
    vec<int> list;
    for (choice next; find(at, next, list);) {
      at = root_.order.position(next.op);
      next.factor = list.size() > 1 ? best_of(next, list, ahead) : list[0];
      root_.settle(next.op, next.axis, next.factor);
      take(next);
    }
  }
  constexpr int best_of(choice next, const vec<int>& list, int ahead) {
    figures least;
    int best = list[0];
    for (int f : list) {
      next.factor = f;
      take(next);
      path_.push_back(next);
      if (const figures found = best_after(ahead); found.less_than(least)) {
        least = found;
        best = f;
      }
      undo_to(root_);
      path_.clear();
    }
    return best;
  }
  /// The best figures after the next `ahead` conflicts are settled.
  constexpr figures best_after(int ahead) {
    choice next;
    vec<int> list;
    if (ahead == 0 || !find(tried_.order.position(path_[0].op), next, list)) return now();
    figures least;
    const std::size_t here = path_.size();
    for (std::size_t i = 0; i < list.size(); ++i) {
      next.factor = list[i];
      take(next);
      path_.push_back(next);
      if (const figures found = best_after(ahead - 1); found.less_than(least)) least = found;
      if (i + 1 == list.size()) break;
      undo_to(root_);
      path_.resize(here, choice{});
      for (const choice& each : path_) take(each);
    }
    return least;
  }
  /// Finds the first conflict with choices, in execution order from a position on, then from the
  /// beginning.
  constexpr bool find(int position, choice& next, vec<int>& list) const {
    for (const int from : {position, 0}) {
      op_id o = tried_.conflict_from(from);
      for (; o >= 0; o = tried_.conflict_from(tried_.order.position(o) + 1))
        for (int i = 0; i < tried_.mesh.rank; ++i) {
          const int axis = tried_.mesh.order[i];
          list = tried_.choices(o, axis);
          if (list.empty()) continue;
          next = {o, axis, any_factor};
          return true;
        }
    }
    return false;
  }

  // ---- Order of the layouts ---------------------------------------------------------------------

  constexpr void find_order() {
    const std::size_t begin = c_.settled.size();
    int left = small_ ? 32 : 8;  // orders that are tried
    figures least = settled_figures();
    vec<settled_conflict> open = root_.settled;
    vec<source> seen;
    start_again();
    for (std::size_t i = begin; i < open.size() && left > 0; ++i) {
      source best;
      vec<settled_conflict> open_after;
      for (const evidence& e : {open[i].what.first, open[i].what.second}) {
        const source s = source_of(open[i].what, e);
        bool known = s.value < 0;
        for (const source& each : seen)
          known = known || (each.value == s.value && each.axis == s.axis);
        if (known || left-- == 0) continue;
        seen.push_back(s);
        if (!put_first(tried_, s)) return;
        put_first(root_, s);
        if (const figures found = settled_figures(); found.less_than(least)) {
          least = found;
          best = s;
          open_after = root_.settled;
        }
        start_again();
      }
      if (best.value < 0) continue;
      put_first(c_, best);
      put_first(root_, best);
      put_first(tried_, best);
      open = open_after;
      seen.clear();
      i = begin - 1;
    }
  }
  /// The figures after all conflicts are settled, with a short view.
  constexpr figures settled_figures() {
    settle_all(small_ ? 3 : 0);
    return now();
  }
  constexpr void start_again() {
    root_.restore(c_, true);
    undo_to(c_);
  }
  constexpr bool put_first(core_program& c, const source& s) {
    const std::size_t from = c.changes.size();
    if (!c.first(s.value, s.axis)) return false;
    if (&c == &tried_) look_at(from);
    return true;
  }
  /// The `tile` action of the tactic that caused evidence of a conflict: the nearest one on a way
  /// through ops that are sliced along the axis, among the first `most_on_way` ops.
  constexpr source source_of(const conflict& k, const evidence& e) {
    if (k.kind != conflict_kind::several && e == k.second) return {};
    const int axis = c_.mesh.parts_of(k.where()).axes[0];
    seen_.resize(c_.p.ops.size(), 0);
    const int now = ++searches_;
    vec<op_id> list;
    const auto visit = [&](op_id o) {
      if (seen_[o] != now && list.size() < most_on_way) list.push_back(o);
      seen_[o] = now;
    };
    const auto visit_uses = [&](const op_node& n, bool all) {
      for (int r = 0; r < n.result_count; ++r)
        for (const use& u : c_.uses(n.result + r))
          if (all || c_.required_layout(u.op, u.operand).dim_of(axis) >= 0) visit(u.op);
    };
    seen_[k.op] = now;
    if (e.operand >= 0)
      visit(c_.p.producer(c_.p.operand(k.op, e.operand)));
    else
      visit_uses(c_.p.op(k.op), true);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const op_id o = list[i];
      const op_node& n = c_.p.op(o);
      const loop* l = c_.nest_of(o).find(axis);
      if (l == nullptr || n.result_count == 0) continue;
      if (l->asked && l->tactic == c_.tactic)
        for (std::size_t a = c_.actions.size(); a-- > 0 && c_.actions[a].tactic == c_.tactic;) {
          const action& given = c_.actions[a];
          if (given.kind != action_kind::tile || given.value != c_.source_of(n.result)) continue;
          for (int part : c_.parts(given.axis))
            if (part == axis) return {given.value, given.axis};
        }
      for (int j = 0; j < n.operand_count; ++j)
        if (c_.required_layout(o, j).dim_of(axis) >= 0) visit(c_.p.producer(c_.p.operand(o, j)));
      visit_uses(n, false);
    }
    return {};
  }
};

}  // namespace cost_detail

/// Resolves the conflicts between the layouts of the current tactic, which has no order of its own.
///
/// Choices are compared by the flops of a device, then by the bytes that it sends (as
/// layout_changes counts them, without halos). Among equals the first one is taken: to change
/// nothing, then in the order of the op's operands and results.
///
/// 1. Order: For a conflict, the tactic is propagated again with one of the two layouts that caused
///    it first (core_program::first). The better one is kept if it improves the program, and the
///    search continues with the conflicts that are left.
/// 2. Settle: Each conflict that is left is settled on its own, in execution order, by the
///    choice with the best figures after the next conflicts, too, are settled in the best way.
///
/// Conflicts with evidence from an earlier tactic stay: there, the user's order decides.
///
/// Cost      without conflicts none; otherwise, a copy of the program, a propagation for each order
///           that is tried, and what propagates from each choice that is tried
constexpr void settle_conflicts(core_program& c) {
  for (op_id o = c.conflict_from(0); o >= 0; o = c.conflict_from(c.order.position(o) + 1))
    for (int i = 0; i < c.mesh.rank; ++i)
      if (!c.choices(o, c.mesh.order[i]).empty()) return cost_detail::conflict_settler(c).run();
}

}  // namespace partita
