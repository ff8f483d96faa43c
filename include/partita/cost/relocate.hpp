/// Cheap ops are computed where that sends least: before a value grows, or after it shrinks.
#pragma once

#include <cstdint>

#include <partita/cost/settle.hpp>
#include <partita/cost/split_axes.hpp>
#include <partita/spmd/lower.hpp>

namespace partita {

namespace cost_detail {

/// True if a loop over a factor stacks slices of the result, which may depend on where they start.
constexpr bool is_stacked(const factor& f) {
  return f.combine == combiner::stack && f.result_dim != no_dim && (f.offset || is_plain_factor(f));
}
/// The same for slices that read halos.
constexpr bool is_stacked_window(const factor& f) {
  return f.combine == combiner::stack && f.result_dim != no_dim && f.halo;
}
/// True for an op that a compiler fuses into others, if no action asks for its loops, and if it
/// computes each slice of its result from slices of its operands.
constexpr bool may_move(const core_program& c, op_id o) {
  const op_node& n = c.p.op(o);
  if (n.def->role != op_role::compute || n.result_count != 1 || n.region_count > 0 ||
      c.returned[n.result] ||
      (n.def->fusion != fusion_kind::view && n.def->fusion != fusion_kind::loop))
    return false;
  for (const loop& l : c.nest_of(o))
    if (l.asked || l.factor == any_factor ||
        !(is_stacked(c.map.at(o, l.factor)) || is_stacked_window(c.map.at(o, l.factor))))
      return false;
  return true;
}
/// The elements of an op's result on a device.
constexpr std::int64_t slice_of(const core_program& c, value_id v, const layout& l) {
  return l.local(c.p.type(v).shape, c.mesh).elements();
}
/// True if the result of an op has more bytes than its operands.
constexpr bool grows(const core_program& c, op_id o) {
  std::int64_t bytes = 0;
  for (const value_id v : c.p.operands(o)) bytes = saturating_add(bytes, c.p.type(v).bytes());
  return c.p.type(c.p.op(o).result).bytes() > bytes;
}
/// Finds the loops that slice an operand of an op, or its result (-1), as layout `wanted` does.
/// False if there are none, or if slices of the result, whose layout is `made`, would become larger
/// although the op does not make its operands larger; a window of an operand may become larger.
constexpr bool find_loops(const core_program& c, op_id o, int end, const layout& wanted,
                          const layout& made, vec<loop>& loops) {
  const factor_table::row& row = c.map.ops[o];
  const factor* const factors = c.map.factors_of(o);
  vec<std::int64_t> left;
  for (int f = 0; f < row.count; ++f) left.push_back(std::int64_t{factors[f].size});
  layout result;
  for (const auto& e : wanted) {
    int f = 0;
    while (f < row.count && (c.map.dim_of(factors[f], end) != e.dim || left[f] <= 1)) ++f;
    if (f == row.count || !is_stacked(factors[f]) || left[f] % c.mesh.size(e.axis) != 0 ||
        !c.map.is_front(o, f, left.data()))
      return false;
    left[f] /= c.mesh.size(e.axis);
    loops.push_back({f, c.tactic, static_cast<std::int8_t>(e.axis)});
    result.push_back(e.axis, factors[f].result_dim);
  }
  const value_id v = c.p.op(o).result;
  return slice_of(c, v, result) <= slice_of(c, v, made) || grows(c, o) ||
         (end >= 0 && c.has_halo(o) &&
          slice_of(c, v, result) <= slice_of(c, c.p.operand(o, end), wanted));
}
/// Calls f(end, layout) for each other layout in which a use of an op needs its result (end -1), or
/// in which an operand (end) is produced, as long as f returns false. Returns whether f did not.
template <class F>
constexpr bool any_other_layout(const core_program& c, op_id o, const F& f) {
  const value_id v = c.p.op(o).result;
  const layout made = c.produced_layout(v);
  for (const use& u : c.uses(v))
    if (const layout l = c.required_layout(u.op, u.operand); !(l == made) && f(-1, l)) return true;
  for (int i = 0; i < c.p.op(o).operand_count; ++i)
    if (const layout l = c.produced_layout(c.p.operand(o, i));
        !(l == c.required_layout(o, i)) && f(i, l))
      return true;
  return false;
}
/// The ops that may move, in execution order; none if no op has other loops to take.
constexpr vec<op_id> movable_ops(const core_program& c) {
  vec<op_id> list;
  bool any = false;
  for (op_id o = c.order.first(); o >= 0; o = c.order.after(o)) {
    if (!may_move(c, o)) continue;
    list.push_back(op_id{o});
    any = any || c.has_halo(o) || any_other_layout(c, o, [&](int end, const layout& l) {
            vec<loop> loops;
            return find_loops(c, o, end, l, c.produced_layout(c.p.op(o).result), loops);
          });
  }
  if (!any) list.clear();
  return list;
}

/// True if slices turn one layout into another.
constexpr bool is_sliced_to(const layout& have, const layout& want, int rank) {
  return spmd_detail::plain_way(have, want, rank, true).gather.count == 0;
}
/// True for ops whose result is their operand, sharded as an action asks for.
constexpr bool is_pass(const core_program& c, op_id o) {
  return c.p.is(o, op_role::tiling) || c.p.is(o, op_role::tag);
}
/// The maximum number of ops and uses that change together.
inline constexpr int most_changes = 16;

/// False if a chain of ops that ends at a value begins at one with loops over axes other than
/// `wanted`, so that slices alone do not give it. `changes`: those left.
constexpr bool may_be_sliced(const core_program& c, value_id v, const layout& wanted,
                             int& changes) {
  bool within = true;
  for (const auto& e : c.produced_layout(v)) {
    bool known = false;
    for (const auto& w : wanted) known = known || w.axis == e.axis;
    within = within && known;
  }
  if (within) return true;
  const op_id o = c.p.producer(v);
  if (--changes < 0 || !(is_pass(c, o) || may_move(c, o))) return false;
  for (const value_id each : c.p.operands(o))
    if (!may_be_sliced(c, each, wanted, changes)) return false;
  return true;
}
/// The uses whose operands need a collective, and whose producers may compute them otherwise.
constexpr vec<use> costly_uses(const core_program& c) {
  vec<use> list;
  for (op_id o = c.order.first(); o >= 0; o = c.order.after(o))
    for (int i = 0; i < c.p.op(o).operand_count; ++i) {
      const value_id v = c.p.operand(o, i);
      const layout want = c.required_layout(o, i), have = c.produced_layout(v);
      if (want == have || is_sliced_to(have, want, c.p.type(v).shape.rank)) continue;
      int changes = most_changes;
      if ((is_pass(c, c.p.producer(v)) || may_move(c, c.p.producer(v))) &&
          may_be_sliced(c, v, want, changes))
        list.push_back({o, i});
    }
  return list;
}

constexpr bool same_loops(const nest& a, const nest& b) {
  bool same = a.count == b.count;
  for (int i = 0; same && i < a.count; ++i)
    same = a.loops[i].axis == b.loops[i].axis && a.loops[i].factor == b.loops[i].factor;
  return same;
}

/// See relocated.
class op_mover {
 public:
  constexpr op_mover(core_program& c, const passes& rules)
      : c_(c), account_(c), changes_(c, rules, account_) {}

  /// Returns true if some op or use moved.
  constexpr bool run(const vec<op_id>& list, bool chains) {
    changes_.update(vec<op_id>());
    for (int round = 0; round < most_rounds; ++round) {
      const int before = moves_;
      if (chains) {
        for (const use& u : costly_uses(c_)) try_chain(u);
        for (const op_id o : list)
          if (c_.has_halo(o)) try_chain({o, -1});
      }
      for (std::size_t i = list.size(); i-- > 0;) move_to_uses(list[i]);
      for (const op_id o : list) move_to_operands(o);
      if (moves_ == before) break;
    }
    return moves_ > 0;
  }

 private:
  static constexpr int most_rounds = 3;
  /// The flops that a device may spend for a byte that it does not send.
  static constexpr std::int64_t flops_of_byte = 8;

  core_program& c_;
  work_account account_;
  layout_changes<work_account> changes_;
  int moves_ = 0;
  struct change {
    use where;
    value_id value;  ///< the operand before, or -1
    vec<loop> loops;
  };
  vec<change> changed_;  ///< in `try_chain`
  /// There: the maximum of elements, on a device, of values that exist anyway and of new ones.
  std::int64_t given_ = 0, made_ = 0;

  /// The bytes that a device sends, where those of halos are only those of one op.
  constexpr std::int64_t sent(op_id o) const {
    std::int64_t bytes = 0;
    spmd_detail::halo_numbers numbers;
    const spmd_detail::pending_sums& sums = changes_.layouts().sums;
    spmd_detail::for_each_halo_message(
        c_, sums, numbers, o,
        [&](int, const halo_loops& h, int k, std::int64_t, std::int64_t elements) {
          tensor_type t = c_.p.type(c_.p.operand(o, k));
          sums.required_layout({o, k}).slice(t.shape, c_.mesh);
          t.shape[h.cut.operand_dims[k]] = elements;
          bytes = saturating_add(bytes, t.bytes());
        });
    const std::int64_t times = c_.nested.scopes[c_.nested.scope[o]].trips;
    return saturating_add(account_.bytes(), saturating_multiply(bytes, times));
  }

  static constexpr std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
  constexpr void move_to_uses(op_id o) {
    const value_id v = c_.p.op(o).result;
    for (std::size_t i = 0; i < c_.uses(v).size(); ++i) {
      const use u = c_.uses(v)[i];
      try_layout(o, -1, c_.required_layout(u.op, u.operand));
    }
  }
  constexpr void move_to_operands(op_id o) {
    for (int i = 0; i < c_.p.op(o).operand_count; ++i)
      try_layout(o, i, changes_.layout_of(c_.p.operand(o, i)));
  }
  /// Gives an op the loops that slice an operand, or its result (-1), as a layout does, if that
  /// sends less.
  constexpr void try_layout(op_id o, int end, const layout& wanted) {
    const layout have =
        end < 0 ? c_.produced_layout(c_.p.op(o).result) : c_.required_layout(o, end);
    vec<loop> loops;
    if (wanted == have ||
        !find_loops(c_, o, end, wanted, c_.produced_layout(c_.p.op(o).result), loops))
      return;
    const vec<loop> old(c_.nest_of(o).begin(), c_.nest_of(o).end());
    const std::int64_t bytes = sent(o), flops = account_.flops();
    set(o, loops);
    const bool same =
        (end < 0 ? c_.produced_layout(c_.p.op(o).result) : c_.required_layout(o, end)) == wanted;
    const std::int64_t saved = bytes - sent(o);
    if (same && saved > 0 &&
        account_.flops() <= saturating_add(flops, saturating_multiply(saved, flops_of_byte)))
      ++moves_;
    else
      set(o, old);
  }
  constexpr void set(op_id o, const vec<loop>& loops) {
    c_.set_loops(o, loops);
    changes_.update({o});
  }
  /// Gives the ops from which a use's operand is computed, back to values that need only be sliced,
  /// the loops that the use needs, if that sends less. Operand -1: the op first loses its loops.
  constexpr void try_chain(const use& u) {
    const bool all = u.operand < 0;
    const value_id v = c_.p.operand(u.op, all ? 0 : u.operand);
    const std::int64_t bytes = sent(u.op), flops = account_.flops();
    changed_.clear();
    given_ = slice_of(c_, v, all ? layout{} : c_.required_layout(u.op, u.operand));
    made_ = all ? slice_of(c_, c_.p.op(u.op).result, {}) : 0;
    if (all) change_loops(u.op, {});
    bool free = true;
    for (int i = 0; free && i < c_.p.op(u.op).operand_count; ++i)
      if (all || i == u.operand) free = pull({u.op, i}, c_.required_layout(u.op, i));
    const std::int64_t saved = bytes - sent(u.op);
    if (free && saved > 0 && made_ <= given_ &&
        account_.flops() <= saturating_add(flops, saturating_multiply(saved, flops_of_byte))) {
      ++moves_;
      for (const change& each : changed_) drop_slices(each.value);
      return;
    }
    for (; !changed_.empty(); changed_.pop_back()) {
      const change& last = changed_.back();
      if (last.value >= 0)
        replace(last.where, last.value);
      else
        set(last.where.op, last.loops);
    }
  }
  /// Leaves a value unsharded, as its operand is, if nothing uses it any more.
  constexpr void drop_slices(value_id v) {
    if (v < 0 || !c_.uses(v).empty() || c_.returned[v]) return;
    const op_id o = c_.p.producer(v);
    if (changes_.layout_of(c_.p.operand(o, 0)).count == 0) set(o, {});
  }
  constexpr void change_loops(op_id o, const vec<loop>& loops) {
    changed_.push_back({{o, -1}, -1, vec<loop>(c_.nest_of(o).begin(), c_.nest_of(o).end())});
    set(o, loops);
  }
  constexpr bool pull(const use& u, const layout& want) {
    const value_id v = c_.p.operand(u.op, u.operand);
    const layout& have = changes_.layout_of(v);
    if (is_sliced_to(have, want, c_.p.type(v).shape.rank)) {
      given_ = larger(given_, slice_of(c_, v, have));
      return true;
    }
    if (changed_.size() == std::size_t{most_changes}) return false;
    const op_id o = c_.p.producer(v);
    if (is_pass(c_, o)) {
      changed_.push_back({u, v, {}});
      replace(u, c_.p.operand(o, 0));
      return pull(u, want);
    }
    vec<loop> loops;
    if (!may_move(c_, o) || !find_loops(c_, o, -1, want, want, loops)) return false;
    made_ = larger(made_, slice_of(c_, v, want));
    change_loops(o, loops);
    bool free = c_.produced_layout(v) == want && !c_.has_halo(o);
    for (int i = 0; free && i < c_.p.op(o).operand_count; ++i)
      free = pull({o, i}, c_.required_layout(o, i));
    return free;
  }
  constexpr void replace(const use& u, value_id v) {
    const value_id before = c_.p.operand(u.op, u.operand);
    c_.set_operand(u, v);
    changes_.update({u.op, c_.p.producer(before), c_.p.producer(v)});
  }
};

}  // namespace cost_detail

/// Moves ops that compilers fuse (elementwise ops, broadcasts, conversions, slices, transposes):
/// gives such an op the loops of one of its uses, so that its operands are sent instead of its
/// result, or those of an operand, so that its result is sent. Each move sends fewer bytes, and
/// adds at most 8 flops for each byte saved. Slices of a result become larger only if the op makes
/// its operands larger, so that activations stay sharded. Returns true, and the program in `moved`,
/// if any op moved; this program is to be lowered only, because its log does not have the moves.
///
/// `chains`: chains of such ops, and of values that actions slice, are computed again as a use
/// needs them, if they begin at values that need only be sliced for that. What every device has is
/// not gathered.
///
/// Ops with loops that an action requests, results of the program and sums stay. So does a program
/// that has axes of several sizes.
///
/// Cost      without values in two layouts, linear in ops; otherwise a copy, that of layout_changes
///           for the program, and what a move changes for each one that is tried
constexpr bool relocated(const core_program& c, const passes& rules, core_program& moved,
                         bool chains = true) {
  if (c.uneven_sizes().axes != 0) return false;
  const vec<op_id> list = cost_detail::movable_ops(c);
  if (list.empty() && (!chains || cost_detail::costly_uses(c).empty())) return false;
  moved = c;
  return cost_detail::op_mover(moved, rules).run(list, chains);
}

/// Lowers a program, with ops moved (see relocated) if the pass is on and a device then sends fewer
/// bytes; these are in `sent`.
constexpr lowered lower_relocated(const core_program& c, const lowering_options& options,
                                  core_program& moved, std::int64_t& sent) {
  const auto sum = [&](const lowered& of) {
    std::int64_t bytes = 0;
    for (const collective_note& n : of.notes)
      bytes = saturating_add(bytes, saturating_multiply(n.bytes_sent(c.mesh), n.times));
    return bytes;
  };
  lowered l = lower(c, options);
  sent = sum(l);
  if (l.error || !options.passes.relocate || !relocated(c, options.passes, moved)) return l;
  lowered other = lower(moved, options);
  if (!other.error && live_bytes(other.device.local).peak() > live_bytes(l.device.local).peak()) {
    // chains may keep unsharded values that the user shards to save memory
    if (!relocated(c, options.passes, moved, false)) {
      moved = {};
      return l;
    }
    other = lower(moved, options);
  }
  if (other.error || sum(other) >= sent) {
    moved = {};
    return l;
  }
  sent = sum(other);
  for (collective_note& n : other.notes)
    if (n.op >= 0 &&
        (n.reason == collective_reason::use_needs_it ||
         n.reason == collective_reason::whole_needed) &&
        !cost_detail::same_loops(c.nest_of(n.op), moved.nest_of(n.op)))
      n.reason = collective_reason::relocated;
  return other;
}
/// The same. Splits axes of the program where its conversions then send less.
constexpr lowered lower_relocated(core_program& c, const lowering_options& options) {
  core_program moved, split;
  std::int64_t sent = 0, then = 0;
  lowered l = lower_relocated(c, options, moved, sent);
  if (l.error) return l;
  const vec<sub_axis> cuts = useful_cuts(moved.p.ops.empty() ? c : moved, l, options.passes);
  if (cuts.empty()) return l;
  split = c;
  for (const sub_axis& s : cuts) split.refine(s);
  moved = {};
  lowered other = lower_relocated(split, options, moved, then);
  if (other.error || then > sent || (then == sent && other.counts.total() >= l.counts.total()))
    return l;
  c = static_cast<core_program&&>(split);
  return other;
}

}  // namespace partita
