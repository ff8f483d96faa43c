/// Incremental layouts: the collectives that convert values, updated after each change of a
/// program.
#pragma once

#include <cstdint>

#include <partita/spmd/local_layouts.hpp>
#include <partita/spmd/owner_slice.hpp>
#include <partita/spmd/row_lookup.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Visits the collectives that `lower` would emit for a program with fusion, before the rewriting
/// passes, without lowering it. After a change of the program it visits only the collectives that
/// may differ: those of operands and results of the changed ops, and of other uses of these values.
///
/// The results go to an account. It is called for each value, each operand (by its index in the
/// program's operand list) and each op that is visited, repeatedly or for the first time:
///
/// ```cpp
/// void clear();                   // everything will be reported again
/// void grow();                    // there may be more ops and values than before
/// void value(v, finish);          // finish(f) calls f(collective, layout after it),
///                                 // returns the final layout; call it once
/// void operand(place, v, bring);  // bring(f) calls f(reshard_step)
/// void op(o, layouts);            // its loops, or the sums that it takes over
/// ```
///
/// Cost: linear in the visited ops, which are the entire program at first.
template <class Account>
class layout_changes {
 public:
  constexpr layout_changes(const core_program& c, const passes& rules, Account& account)
      : c_(c), layouts_(c, rules), repeated_(c), account_(account) {}

  /// Visits everything that changed since the last call, according to the program's log of changes;
  /// the first call visits the program.
  constexpr void update() {
    vec<op_id> changed;
    is_changed_.resize(c_.p.ops.size(), 0);
    bool all = layout_of_.empty();
    for (; read_ < c_.changes.size(); ++read_) all = note(c_.changes[read_], changed) || all;
    look(changed, all);
  }
  /// The same for given changes: ops that have changed, in either direction, or -1 for all.
  constexpr void update(const vec<op_id>& told) {
    vec<op_id> changed;
    is_changed_.resize(c_.p.ops.size(), 0);
    bool all = layout_of_.empty();
    for (op_id o : told) all = note(o, changed) || all;
    look(changed, all);
  }
  constexpr const spmd_detail::local_layouts& layouts() const { return layouts_; }
  /// The layout of a value on a device, after the collective that finishes its sum.
  constexpr const layout& layout_of(value_id v) const { return layout_of_[v]; }

 private:
  const core_program& c_;
  spmd_detail::local_layouts layouts_;
  spmd_detail::repeated_operands repeated_;
  Account& account_;
  vec<layout> layout_of_;           ///< by value
  vec<char> is_known_;              ///< by value: true if it was visited and had no sum to finish
  vec<char> is_changed_, is_done_;  ///< by op, by value: used in `update`
  std::size_t read_ = 0;            ///< position in the log of changes

  /// Records a changed op; returns true if all ops have changed.
  constexpr bool note(op_id o, vec<op_id>& changed) {
    if (o < 0) return true;
    if (is_changed_[o] != 0) return false;
    is_changed_[o] = 1;
    changed.push_back(o);
    return false;
  }
  constexpr void look(vec<op_id>& changed, bool all) {
    if (all) {
      layouts_.sums.find(true);
      look_at_all();
    } else if (!changed.empty()) {
      grow();
      layouts_.sums.update(changed, is_changed_);
      look_again(changed);
    }
  }
  constexpr void grow() {
    layout_of_.resize(c_.p.types.size());
    is_known_.resize(c_.p.types.size(), 0);
    is_done_.resize(c_.p.types.size(), 0);
    account_.grow();
  }
  constexpr void look_at_all() {
    layout_of_.clear();
    is_known_.clear();
    is_changed_.assign(c_.p.ops.size(), 0);
    is_done_.clear();
    account_.clear();
    grow();
    read_ = c_.changes.size();
    const op_order& order = c_.order;
    for (op_id o = order.first(); o >= 0; o = order.after(o)) {
      const op_node& n = c_.p.ops[o];
      for (value_id v = n.result; v < n.result + n.result_count; ++v) finish(v);
    }
    for (op_id o = order.first(); o >= 0; o = order.after(o)) look_at(o);
  }
  constexpr void look_again(const vec<op_id>& changed) {
    vec<value_id> done;
    const auto finish_once = [&](value_id v) {
      if (is_done_[v] != 0) return;
      is_done_[v] = 1;
      done.push_back(v);
      if (!finish(v)) return;
      look_at_users(v);
      // it may gather its operands instead of scattering its sum
      const op_id o = c_.p.producers[v];
      if (c_.p.ops[o].def->id == def<op::scatter>.id && is_changed_[o] == 0) look_at_operands(o);
    };
    for (std::size_t k = 0; k < changed.size(); ++k) {
      const op_node& n = c_.p.ops[changed[k]];
      const value_id* const operands = c_.p.operand_list.data() + n.operand_begin;
      PARTITA_WORK(n.operand_count);
      for (int i = 0; i < n.operand_count; ++i) finish_once(operands[i]);
      for (value_id v = n.result; v < n.result + n.result_count; ++v) finish_once(v);
    }
    for (std::size_t k = 0; k < changed.size(); ++k) {
      is_changed_[changed[k]] = 0;
      look_at(changed[k]);
    }
    for (std::size_t i = 0; i < done.size(); ++i) is_done_[done[i]] = 0;
  }

  /// Visits the sum of a value; returns true if the value's layout changed.
  constexpr bool finish(value_id v) {
    const layout made = layouts_.sums.produced_layout(v);
    const bool finished = layouts_.finished(v);
    if (finished && is_known_[v] != 0 && made == layout_of_[v]) return false;
    is_known_[v] = finished;
    layout have = made;
    account_.value(v, [&](const auto& f) {
      if (finished) return have;
      if (const auto update = spmd_detail::find_row_update(c_, c_.p.producers[v], layouts_))
        have = update.op_layout;
      else
        have = layouts_.finish(v, made, f);
      return have;
    });
    if (have == layout_of_[v]) return false;
    layout_of_[v] = have;
    return true;
  }
  /// Visits the ops that use a value and have not changed themselves.
  constexpr void look_at_users(value_id v) {
    const auto uses = c_.uses(v);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const op_id o = uses[i].op;
      if (is_changed_[o] != 0 || (i > 0 && uses[i - 1].op == o)) continue;
      const bool again = i + 1 < uses.size() && uses[i + 1].op == o;
      if (again || c_.p.ops[o].operand_count < 8)
        look_at_operands(o);
      else
        look_at_operand(uses[i], layouts_.sums.required_layout(uses[i]));
    }
  }
  constexpr void look_at(op_id o) {
    look_at_operands(o);
    account_.op(o, layouts_);
  }
  constexpr void look_at_operands(op_id o) {
    const op_node& n = c_.p.ops[o];
    const int count = n.operand_count;
    const value_id* const values = layouts_.sums.view().operands + n.operand_begin;
    const bool distinct = n.def->role == op_role::wire || !spmd_detail::may_repeat(values, count);
    for (int i = 0; i < count; ++i) {
      const layout want = layouts_.sums.required_layout({o, i});
      if (distinct || repeated_.before(o, i, want, layouts_.sums) < 0)
        look_at_operand({o, i}, want);
      else
        account_.operand(n.operand_begin + i, values[i], [](const auto&) {});
    }
  }
  /// True if an op is a slice that the owners of its elements send; then reports the sum to `f`.
  template <class F>
  constexpr bool send_from_owners(op_id o, const layout& have, const layout& want,
                                  const F& f) const {
    const layout along = spmd_detail::owner_slice_axes(c_, o, have, want);
    if (along.count == 0) return false;
    reshard_step sum;
    sum.what = spmd_detail::owner_slice_sum(c_, o, along);
    sum.of = c_.p.op(o).result;
    sum.after = layouts_.sums.produced_layout(sum.of);
    f(sum);
    return true;
  }
  /// True if an op is a gather whose table stays in place; then reports its collectives to `f`.
  template <class F>
  constexpr bool keep_rows(const use& u, const F& f) const {
    if (u.operand != 0) return false;
    const spmd_detail::row_lookup found =
        spmd_detail::find_row_lookup(c_, u.op, layouts_, [&](value_id v) { return layout_of_[v]; });
    if (!found) return false;
    const auto send = [&](const collective& what, value_id of, const layout& lies) {
      reshard_step s;
      s.what = what;
      s.of = of;
      s.after = lies;
      f(s);
    };
    send(found.indices, c_.p.operand(u.op, 1), found.indices_layout);
    send(found.result, c_.p.op(u.op).result, found.op_layout);
    return true;
  }
  constexpr void look_at_operand(const use& u, const layout& want) {
    const loop_view& program = layouts_.sums.view();
    const int place = program.ops[u.op].operand_begin + u.operand;
    const value_id v = program.operands[place];
    const layout& have = layout_of_[v];
    account_.operand(place, v, [&](const auto& f) {
      if (!layouts_.stays(have, want) && !send_from_owners(u.op, have, want, f) && !keep_rows(u, f))
        layouts_.bring(v, have, want, f);
      if (const auto update = spmd_detail::find_row_update(c_, u.op, layouts_)) {
        reshard_step gather;
        gather.what = update.operands[u.operand];
        gather.after = update.operand_layouts[u.operand];
        f(gather);
      }
    });
  }
};

}  // namespace partita
