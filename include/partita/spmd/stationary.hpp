/// The pass that moves small operands instead of large ones.
///
/// Source    Pope et al., "Efficiently scaling transformer inference" (2022), section 3.2:
///           weight-stationary and weight-gathered layouts
#pragma once

#include <cstdint>

#include <partita/ir/copy.hpp>
#include <partita/ir/live_bytes.hpp>
#include <partita/spmd/lift_gathers.hpp>
#include <partita/spmd/lowered.hpp>
#include <partita/spmd/stationary_plan.hpp>
#include <partita/spmd/varying.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// y = x * all_gather(w), w tiled along a dimension of y => y = all_to_all(all_gather(x) * w)
/// y = x * all_gather(w), w tiled along a summed dimension => y = reduce_scatter(all_to_all(x) * w)
/// reduce_scatter(x * y) => all_to_all(x) * all_gather(y)
///
/// (`*` is a dot_general or a convolution. x is gathered along a dimension that w does not have, a
/// batch; in the third rule x and y are gathered along a summed one.)
///
/// When: a device sends at least `stationary_above` bytes less than for all gathers of w together
/// (of w itself, or reshaped, transposed or reversed), and all of these gathers disappear. The
/// moved value must be a different shard on every device: with copies, each device would compute
/// results for another one, and kernels round differently at different positions. In a loop, w must
/// not be an input of the loop's body, because its gather can be hoisted out of the loop. Why: if
/// activations are smaller than weights, the weights need not move, and each device reads only its
/// shard of them. It ends because each op is visited once. The number of collectives stays equal or
/// grows, but their values are smaller; sums have other terms, in another order.
///
/// Cost      linear in ops and operands
class keeping_stationary {
 public:
  /// `varies`: the axes over which each value varies.
  constexpr keeping_stationary(program& p, const mesh& m, const varying_sets& varies,
                               const passes& on, const program& source,
                               const vec<collective_note>& notes, std::size_t& next,
                               bool nested = false)
      : p_(p),
        varies_(varies),
        mesh_(m),
        on_(on),
        source_(source),
        notes_(notes),
        next_(next),
        nested_(nested),
        planner_(p, m) {}

  /// Rewrites the program and its nested programs. Returns the number of ops changed, and appends
  /// the new notes to `made`.
  constexpr int run(vec<collective_note>& made) {
    prepare();
    keep_gathered();
    keep_scattered();
    return changed_ + write(made);
  }

 private:
  /// Gathers of one value along the same axes, possibly after movement ops.
  struct group {
    std::int64_t gathers = 0, bytes = 0;  ///< bytes of the shard
    std::int64_t cost = 0, members = 1;
    bool possible = true;
    axis_set along;
    int previous = -1;  ///< the previous group of the same value
  };
  struct moved_value {
    movement how;
    layout along;  ///< the axes of the collective
    value_id made = -1;
    int previous = -1;  ///< the previous entry of the same value
  };
  static constexpr int most_moves = 8;  // a limit, because a chain may end in many gathers

  program& p_;
  const varying_sets& varies_;
  const mesh& mesh_;
  const passes& on_;
  const program& source_;
  const vec<collective_note>& notes_;
  std::size_t& next_;  ///< index in `notes_`
  bool nested_;
  stationary_planner planner_;
  int changed_ = 0;
  vec<int> note_of_;          ///< by op that communicates: its note
  vec<stationary_op> plans_;  ///< the possible plans
  vec<int> plan_of_;          ///< by op: its plan, or -1
  vec<op_id> settles_;        ///< by collective that is removed: the op whose rewrite replaces it
  vec<int> uses_;             ///< by value: the number of uses
  vec<group> groups_;
  vec<int> group_of_;  ///< by gather: its group
  vec<moved_value> moved_;
  vec<int> latest_moved_;  ///< by value: its last entry in `moved_`
  op_marks marks_;         ///< the marks of the op being written

  constexpr void prepare() {
    const auto count = p_.ops.size();
    note_of_.resize(count, -1);
    plan_of_.resize(count, -1);
    settles_.resize(count, -1);
    group_of_.resize(count, -1);
    uses_.resize(p_.types.size(), 0);
    latest_moved_.resize(p_.types.size(), -1);
    for (value_id v : p_.operand_list) ++uses_[v];
    for (const auto& out : p_.outputs) ++uses_[out.value];
  }

  // ---- Profit -----------------------------------------------------------------------------------

  constexpr bool worth(std::int64_t before, std::int64_t now, std::int64_t n) const {
    return before > now && (before - now) / n * (n - 1) >= on_.stationary_above;
  }
  /// The value before any movement ops.
  constexpr value_id root(value_id v) const {
    for (int i = 0; i < most_moves && is_movement(p_, p_.producer(v)); ++i)
      v = p_.operand(p_.producer(v), 0);
    return v;
  }
  constexpr void find_groups() {
    vec<int> latest(p_.types.size(), -1);  // by value: its last group
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (!p_.is(o, collective::all_gather)) continue;
      group_of_[o] = group_with(o, latest[root(p_.operand(o, 0))]);
      ++groups_[group_of_[o]].gathers;
    }
  }
  /// Returns the group of a gather. `latest` is the last group of its value, and is updated if a
  /// group is added.
  constexpr int group_with(op_id gather, int& latest) {
    const axis_set along = p_.collective_of(gather).along();
    for (int k = latest; k >= 0; k = groups_[k].previous)
      if (groups_[k].along == along) return k;
    groups_.push_back(new_group(gather, latest));
    return latest = static_cast<int>(groups_.size()) - 1;
  }
  constexpr group new_group(op_id gather, int previous) const {
    const collective what = p_.collective_of(gather);
    const value_id piece = p_.operand(gather, 0);
    group made;
    made.bytes = p_.type(piece).bytes();
    made.members = what.members(mesh_);
    made.along = what.along();
    made.possible = !(nested_ && p_.is(p_.producer(root(piece)), op_role::parameter));
    made.previous = previous;
    return made;
  }
  constexpr void keep_gathered() {
    find_groups();
    if (groups_.empty()) return;
    plan_uses();
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (plan_of_[o] < 0) continue;
      const op_id gather = plans_[plan_of_[o]].settled;
      if (worth_keeping(groups_[group_of_[gather]]))
        settle(gather, o);
      else
        plan_of_[o] = -1;
    }
  }
  constexpr void plan_uses() {
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (int i = 0; i < p_.op(o).operand_count; ++i)
        if (const op_id q = p_.producer(p_.operand(o, i)); group_of_[q] >= 0) plan_use(o, i, q);
    for (const auto& out : p_.outputs)
      if (const op_id q = p_.producer(out.value); group_of_[q] >= 0)
        groups_[group_of_[q]].possible = false;
  }
  constexpr void plan_use(op_id o, int i, op_id gather) {
    group& g = groups_[group_of_[gather]];
    stationary_op plan;
    g.possible = g.possible && plan_of_[o] < 0 && planner_.gathered(o, i, gather, plan) &&
                 moves_pieces(o, plan);
    if (!g.possible) return;
    g.cost = saturating_add(g.cost, plan.cost);
    add_plan(o, plan);
  }
  /// True if the operands to be moved are different shards on every device.
  constexpr bool moves_pieces(op_id o, const stationary_op& plan) const {
    const axis_set along = axes_of(mesh_, plan.along);
    for (int i = 0; i < 2; ++i)
      if (!plan.operands[i].none() && !(along - varies_.values[p_.operand(o, i)]).empty())
        return false;
    return true;
  }
  constexpr void add_plan(op_id o, const stationary_op& plan) {
    plan_of_[o] = static_cast<int>(plans_.size());
    plans_.push_back(plan);
  }
  constexpr void settle(op_id not_needed, op_id beside) {
    settles_[not_needed] = beside;
    ++changed_;
  }
  /// Where memory is bounded, gathers may not be shared, so that the actual number of gathers
  /// counts.
  constexpr bool worth_keeping(const group& g) const {
    const bool shared = on_.share_gathers == shared_uses::all && on_.memory_bound == 0;
    const auto once = saturating_multiply(g.bytes, g.members);
    return g.possible &&
           worth(saturating_multiply(once, shared ? 1 : g.gathers), g.cost, g.members);
  }
  constexpr void keep_scattered() {
    for (op_id s = 0; s < p_.op_count(); ++s) {
      if (!p_.is(s, collective::reduce_scatter)) continue;
      const value_id sum = p_.operand(s, 0);
      const op_id o = p_.producer(sum);
      stationary_op plan;
      if (uses_[sum] > 1 || plan_of_[o] >= 0 || !planner_.scattered(o, s, plan) ||
          !moves_pieces(o, plan))
        continue;
      if (!worth(p_.type(sum).bytes(), plan.cost, p_.collective_of(s).members(mesh_))) continue;
      settle(s, o);
      add_plan(o, plan);
    }
  }

  // ---- Writing -------------------------------------------------------------------------------

  /// Writes the program; returns the number of ops changed in nested programs.
  constexpr int write(vec<collective_note>& made) {
    program q;
    program_copier copy(p_, q);
    if (changed_ > 0) copy.reserve();
    int inside = 0;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.op(o);
      if (n.def->collective && p_.collective_of(o).communicates())
        note_of_[o] = static_cast<int>(next_++);
      if (note_of_[o] >= 0 && settles_[o] < 0) made.push_back(notes_[note_of_[o]]);
      if (changed_ > 0) write_op(o, copy, q, made);
      for (int r = 0; r < n.region_count; ++r) {
        const int region = n.region_begin + r;
        program& nested = p_.regions[region];
        inside += keeping_stationary(nested, mesh_, varies_.nested[region], on_, source_, notes_,
                                     next_, true)
                      .run(made);
        if (changed_ > 0) q.append_region(static_cast<program&&>(nested));
      }
    }
    if (changed_ == 0) return inside;
    copy.interface();
    p_ = static_cast<program&&>(q);
    return inside;
  }
  constexpr void write_op(op_id o, program_copier& copy, program& q, vec<collective_note>& made) {
    const value_id result = p_.op(o).result;
    if (settles_[o] >= 0 && p_.is(o, collective::all_gather)) return;
    if (settles_[o] >= 0) {
      copy.renamed[result] = write_stationary(settles_[o], copy, q, made);
    } else if (plan_of_[o] < 0) {
      copy.op(o);
    } else if (p_.is(plans_[plan_of_[o]].settled, collective::all_gather)) {
      copy.renamed[result] = write_stationary(o, copy, q, made);
    }  // otherwise written in place of its reduce_scatter
  }
  constexpr value_id write_stationary(op_id o, program_copier& copy, program& q,
                                      vec<collective_note>& made) {
    const stationary_op& plan = plans_[plan_of_[o]];
    collective_note note = notes_[note_of_[plan.settled]];
    note.reason = collective_reason::moved_instead;
    marks_ = p_.op(o).marks;
    const op_node& origin = source_.op(note.op);
    const bool known = origin.operand_count == 2;
    vec<value_id> operands;
    for (int i = 0; i < 2; ++i) {
      value_id v = p_.operand(o, i);
      if (p_.producer(v) == plan.settled) v = p_.operand(plan.settled, 0);  // the shard
      if (known) note.value = source_.operand(note.op, i);
      operands.push_back(moved(v, plan.operands[i], plan.along, note, copy, q, made));
    }
    append_copy(q, p_, o, operands, p_.attrs(o));
    const value_id y = q.append_result(plan.made);
    if (plan.result.none()) return y;
    if (known) note.value = origin.result;
    return move(y, plan.result, plan.along, note, q, made);
  }
  constexpr value_id move(value_id v, const movement& how, const layout& along,
                          collective_note& note, program& q, vec<collective_note>& made) const {
    const collective what = how.over(along);
    note.kind = what.kind;
    note.bytes = q.type(v).bytes();
    made.push_back(note);
    const value_id y = append(q, what, v, how.after(q.type(v), what.members(mesh_)));
    q.ops.back().marks = marks_;
    return y;
  }
  /// Moves a value of `p_`, once for all ops that need it in the same way.
  constexpr value_id moved(value_id v, const movement& how, const layout& along,
                           collective_note& note, program_copier& copy, program& q,
                           vec<collective_note>& made) {
    if (how.none()) return copy.renamed[v];
    const layout over = how.over(along).axes;
    for (int k = latest_moved_[v]; k >= 0; k = moved_[k].previous)
      if (moved_[k].how == how && moved_[k].along == over) return moved_[k].made;
    const value_id y = move(copy.renamed[v], how, along, note, q, made);
    moved_.push_back({how, over, y, latest_moved_[v]});
    latest_moved_[v] = static_cast<int>(moved_.size()) - 1;
    return y;
  }
};

/// Runs the pass over a lowered program, and updates its notes and counts.
constexpr void keep_stationary(lowered& l, const program& source, const passes& on) {
  pass_report report;
  report.name = "stationary";
  report.before = l.counts;
  report.written_before = as_written(l.notes);
  report.peak_before = live_bytes(l.device.local).peak();
  vec<collective_note> notes;
  std::size_t next = 0;
  vec<axis_set> inputs;
  for (const layout& each : l.device.inputs) inputs.push_back(axes_of(l.device.mesh, each));
  varying_sets varies;
  find_varying(l.device.local, l.device.mesh, {inputs.data(), inputs.size()}, varies);
  report.changed =
      keeping_stationary(l.device.local, l.device.mesh, varies, on, source, l.notes, next)
          .run(notes);
  l.notes = static_cast<vec<collective_note>&&>(notes);
  l.counts = counted(l.notes);
  report.after = l.counts;
  report.written_after = as_written(l.notes);
  report.peak_after = live_bytes(l.device.local).peak();
  l.passes.push_back(report);
}

}  // namespace partita::spmd_detail
