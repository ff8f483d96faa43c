/// Counts the collectives of a program under partitioning, without building what they are part of.
#pragma once

#include <cstdint>

#include <partita/spmd/local_layouts.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The collectives that `lower` makes of a program, fused, before passes that rewrite.
///
/// After a change of the program only what depends on it is counted again: how operands and results
/// of the changed ops lie, and what else uses those. Cost: linear in that, at first in the whole
/// program.
class collective_counter {
 public:
  constexpr collective_counter(const core_program& c, const passes& rules)
      : c_(c), layouts_(c, rules), repeated_(c) {}

  /// Counts what has changed since the last call, at first all.
  constexpr void update() {
    vec<op_id> changed;
    is_changed_.resize(c_.p.ops.size(), 0);
    bool all = have_.empty();
    for (; read_ < c_.changes.size(); ++read_) {
      const op_id o = c_.changes[read_];
      all = all || o < 0;
      if (all || is_changed_[o] != 0) continue;
      is_changed_[o] = 1;
      changed.push_back(o);
    }
    if (all) {
      layouts_.sums.find(true);
      count_all();
    } else if (!changed.empty()) {
      grow();
      layouts_.sums.update(changed, is_changed_);
      count_again(changed);
    }
  }

  /// Those inside of loops times their trip counts.
  constexpr collectives counts() const {
    return {times_[0].value(), times_[1].value(), times_[2].value(), times_[3].value(),
            times_[4].value()};
  }
  /// Each once.
  constexpr collectives as_written() const {
    return {written_[0], written_[1], written_[2], written_[3], written_[4]};
  }
  /// How many operands and results were looked at so far.
  constexpr std::int64_t work() const { return work_; }

 private:
  static constexpr int kinds = 5;  // that communicate

  /// What brings an operand into its layout.
  struct way {
    std::uint8_t gathers = 0, all_to_alls = 0;
  };
  /// What finishes a sum.
  struct ending {
    bool scatters = false, reduces = false;
  };

  const core_program& c_;
  spmd_detail::local_layouts layouts_;
  spmd_detail::repeated_operands repeated_;
  vec<layout> have_;                ///< by value
  vec<ending> endings_;             ///< by value
  vec<way> ways_;                   ///< by place in the program's list of operands
  vec<int> messages_;               ///< by op: of halos
  vec<char> is_changed_, is_done_;  ///< by op, by value: in `update`
  std::int64_t written_[kinds] = {};
  level times_[kinds];
  std::size_t read_ = 0;  ///< of the log of changes
  std::int64_t work_ = 0;

  constexpr void grow() {
    have_.resize(c_.p.types.size());
    endings_.resize(c_.p.types.size());
    ways_.resize(c_.p.operand_list.size());
    messages_.resize(c_.p.ops.size(), 0);
    is_done_.resize(c_.p.types.size(), 0);
  }
  constexpr void count_all() {
    have_.clear();
    endings_.clear();
    ways_.clear();
    messages_.clear();
    is_changed_.assign(c_.p.ops.size(), 0);
    is_done_.clear();
    for (int k = 0; k < kinds; ++k) {
      written_[k] = 0;
      times_[k] = {};
    }
    grow();
    read_ = c_.changes.size();
    const op_order& order = c_.order;
    for (op_id o = order.first(); o >= 0; o = order.after(o)) {
      const op_node& n = c_.p.ops[o];
      for (value_id v = n.result; v < n.result + n.result_count; ++v) finish(v);
    }
    for (op_id o = order.first(); o >= 0; o = order.after(o)) count_op(o);
  }
  constexpr void count_again(const vec<op_id>& changed) {
    vec<value_id> done;
    const auto finish_once = [&](value_id v) {
      if (is_done_[v] != 0) return;
      is_done_[v] = 1;
      done.push_back(v);
      if (finish(v)) count_users(v);
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
      count_op(changed[k]);
    }
    for (std::size_t i = 0; i < done.size(); ++i) is_done_[done[i]] = 0;
  }

  constexpr void change(collective::kind_type kind, std::int64_t before, std::int64_t now,
                        std::int64_t trips) {
    if (before == now) return;
    written_[kind] += now - before;
    times_[kind].remove(saturating_multiply(before, trips));
    times_[kind].add(saturating_multiply(now, trips));
  }
  constexpr std::int64_t trips(int scope) const { return c_.nested.scopes[scope].trips; }

  /// Gives whether the value lies otherwise than before.
  constexpr bool finish(value_id v) {
    ++work_;
    ending now;
    layout have = layouts_.sums.made(v);
    if (!layouts_.finished(v))
      have = layouts_.finish(v, have, [&](const collective& what, const layout&) {
        (what.kind == collective::reduce_scatter ? now.scatters : now.reduces) = true;
      });
    ending& before = endings_[v];
    if (before.scatters != now.scatters || before.reduces != now.reduces) {
      const std::int64_t runs = trips(c_.nested.value_scope[v]);
      change(collective::reduce_scatter, before.scatters, now.scatters, runs);
      change(collective::all_reduce, before.reduces, now.reduces, runs);
      before = now;
    }
    if (have == have_[v]) return false;
    have_[v] = have;
    return true;
  }
  /// Ops that use a value but have not changed themselves.
  constexpr void count_users(value_id v) {
    const auto uses = c_.uses(v);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const op_id o = uses[i].op;
      if (is_changed_[o] != 0 || (i > 0 && uses[i - 1].op == o)) continue;
      const bool again = i + 1 < uses.size() && uses[i + 1].op == o;
      if (again || c_.p.ops[o].operand_count < 8)
        count_operands(o);
      else
        count_operand(uses[i], layouts_.sums.required(uses[i]));
    }
  }

  constexpr void count_op(op_id o) {
    count_operands(o);
    count_messages(o);
  }
  constexpr void count_operands(op_id o) {
    const op_node& n = c_.p.ops[o];
    const int count = n.operand_count;
    const value_id* const values = layouts_.sums.view().operands + n.operand_begin;
    const bool distinct = n.def->role == op_role::wire || !spmd_detail::may_repeat(values, count);
    for (int i = 0; i < count; ++i) {
      const layout want = layouts_.sums.required({o, i});
      if (distinct || repeated_.before(o, i, want, layouts_.sums) < 0)
        count_operand({o, i}, want);
      else
        set_way({o, i}, {});
    }
  }
  constexpr void count_operand(const use& u, const layout& want) {
    const loop_view& program = layouts_.sums.view();
    const value_id v = program.operands[program.ops[u.op].operand_begin + u.operand];
    const layout& have = have_[v];
    way now;
    if (!layouts_.stays(have, want))
      layouts_.bring(v, have, want, [&](const reshard_step& s) {
        now.gathers += s.what.kind == collective::all_gather;
        now.all_to_alls += s.what.kind == collective::all_to_all;
      });
    set_way(u, now);
  }
  constexpr void set_way(const use& u, const way& now) {
    ++work_;
    const int place = layouts_.sums.view().ops[u.op].operand_begin + u.operand;
    way& before = ways_[place];
    if (before.gathers == now.gathers && before.all_to_alls == now.all_to_alls) return;
    const value_id v = c_.p.operand_list[place];
    const std::int64_t runs = trips(c_.nested.value_scope[v]);
    change(collective::all_gather, before.gathers, now.gathers, runs);
    change(collective::all_to_all, before.all_to_alls, now.all_to_alls, runs);
    before = now;
  }
  /// The permutes of halos.
  constexpr void count_messages(op_id o) {
    int now = 0;
    if (c_.has_halo(o)) {
      const auto given = c_.p.attrs(o);
      vec<std::int64_t> attrs(given.begin(), given.end());
      for (const auto& h : c_.halos_of(o, attrs))
        for (int k = 0; k < c_.p.ops[o].operand_count; ++k)
          if (h.cut.slices(k))
            spmd_detail::halo_exchange::for_each_message(
                h.cut.ranges[k], h.cut.blocks[k], h.cut.pieces,
                [&](std::int64_t, std::int64_t) { ++now; });
    }
    int& before = messages_[o];
    if (before == now) return;
    change(collective::permute, before, now, trips(c_.nested.scope[o]));
    before = now;
  }
};

}  // namespace partita
