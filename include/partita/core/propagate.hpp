/// Propagation: adds loops wherever exactly one tile-map entry matches, to a fixed point.
#pragma once

#include <partita/core/editor.hpp>
#include <partita/core/match.hpp>
#include <partita/core/sliced_terms.hpp>

namespace partita::core_detail {

/// Visits the ops whose surroundings have changed, in full sweeps over the program, forward then
/// backward, until nothing changes. Cost: the visits, and one step per 4096 ops for each sweep.
class propagation {
 public:
  constexpr propagation(core_editor edit, op_order& order)
      : edit_(edit), c_(edit_.core()), state_(edit_.state()), order_(order) {}

  constexpr void run() {
    number_ops();
    some_open_ = !state_.open.empty();
    do {
      do settle();
      while (slice_terms());
      find_conflicts();
    } while (split_where_a_part_fits());
  }

 private:
  core_editor edit_;
  const loop_program& c_;
  partition_state& state_;
  op_order& order_;
  bool some_open_ = false;
  vec<conflict> found_;  ///< the conflicts found by the last `find_conflicts`, in execution order
  loop_view now_ = {};   ///< valid while the program settles: loops are added, but no ops

  constexpr void number_ops() {
    if (order_.numbered()) return;
    op_set* const sets[] = {&state_.waiting, &state_.open, &state_.revisited};
    vec<op_id> ops[3];
    const int from = order_.has_room() ? order_.settled() : 0;
    for (int i = 0; i < 3; ++i) ops[i] = sets[i]->take_from(from, order_);
    order_.number();
    for (int i = 0; i < 3; ++i)
      for (op_id o : ops[i]) sets[i]->insert(order_, o);
  }

  constexpr void settle() {
    now_ = c_.view();
    const op_set& waiting = state_.waiting;
    while (!waiting.empty()) {
      for (int i = waiting.first_from(0); i >= 0; i = waiting.first_from(i + 1)) visit(i);
      int i = order_.room();
      while ((i = waiting.last_before(i)) >= 0) visit(i);
    }
  }
  /// Looks for sliced terms (sliced_terms.hpp) at the ops that got loops since the last call.
  /// Returns true if other ops got loops.
  constexpr bool slice_terms() {
    const vec<op_id>& changes = c_.changes;
    bool any = false;
    if (state_.terms_seen > changes.size()) state_.terms_seen = changes.size();
    for (const std::size_t end = changes.size(); state_.terms_seen < end; ++state_.terms_seen) {
      const op_id o = changes[state_.terms_seen];
      if (o < 0) continue;
      sliced_terms(c_, now_).look_at(o, [&](op_id other, int f, int axis) {
        edit_.add_loop(other, {f, state_.tactic, static_cast<std::int8_t>(axis)});
        edit_.mark(other);
        now_.more_loops = c_.nests.more();
        any = true;
      });
    }
    return any;
  }
  constexpr void visit(int position) {
    const op_id o = order_.at(position);
    state_.waiting.erase(position);
    ++state_.visits;
    unsigned open = axes_around(o);
    bool in_vain = false;
    for (int i = 0; open != 0; ++i) {
      const int axis = c_.mesh.order[i];
      if ((open >> axis & 1u) == 0) continue;
      open &= ~(1u << axis);
      const match m = find_match(c_, now_, o, axis);
      if (m.one()) {
        edit_.add_loop(o, {m.first.factor, state_.tactic, static_cast<std::int8_t>(axis)});
        now_.more_loops = c_.nests.more();
        if (in_vain) edit_.mark(o);  // an axis visited earlier may have evidence now
        continue;
      }
      in_vain = true;
      if (!m.several && !m.indivisible) continue;
      state_.open.insert(order_, o);
      some_open_ = true;
    }
    if (some_open_ && state_.open.contains(position)) state_.revisited.insert(order_, o);
  }

  /// The axes, as bits, over which an op has no loop but some operand, or all uses of some result,
  /// have one. Only these can have evidence.
  constexpr unsigned axes_around(op_id o) const {
    const op_node& n = now_.ops[o];
    unsigned axes = 0;
    PARTITA_WORK(n.operand_count);
    for (int i = 0; i < n.operand_count; ++i)
      axes |= now_.axes[now_.producers[now_.operands[n.operand_begin + i]]];
    for (int r = 0; r < n.result_count; ++r) {
      const use_range& range = now_.use_ranges[n.result + r];
      unsigned of_all = range.count == 0 ? 0 : ~0u;
      PARTITA_WORK(range.count);
      for (int i = 0; i < range.count && of_all != 0; ++i)
        of_all &= now_.axes[now_.uses[range.begin + i].op];
      axes |= of_all;
    }
    return axes & ~now_.axes[o];
  }

  /// Finds the conflicts of the revisited ops; the conflicts of other ops have not changed.
  constexpr void find_conflicts() {
    found_.clear();
    op_set& open = state_.open;
    op_set& revisited = state_.revisited;
    for (int at = revisited.first_from(0); at >= 0; at = revisited.first_from(at + 1)) {
      revisited.erase(at);
      const op_id o = order_.at(at);
      vec<conflict> now;
      for (int i = 0; i < c_.mesh.rank; ++i) {
        const int axis = c_.mesh.order[i];
        const match m = find_match(c_, now_, o, axis);
        if (!m.several && !m.indivisible) continue;
        const sub_axis s = c_.mesh.part(axis);
        now.push_back({o, s.axis, m.several ? conflict_kind::several : conflict_kind::indivisible,
                       m.first, m.second, state_.tactic, s.pre, s.size});
        found_.push_back(now.back());
      }
      if (now.empty()) open.erase(at);
      const int previous = open.last_before(at);
      state_.conflicts.replace(o, previous < 0 ? -1 : order_.at(previous),
                               static_cast<vec<conflict>&&>(now), state_.conflict_changes);
    }
  }
  /// If an axis is too large for some op, because the op's factor is only a part of the dimension
  /// it slices, splits the axis for the first such op and marks the affected ops. Returns true if
  /// an axis was split.
  constexpr bool split_where_a_part_fits() {
    if (!state_.options.may_split || c_.mesh.rank == max_axes) return false;
    for (const conflict& k : found_) {
      if (k.kind != conflict_kind::indivisible || !is_composed(c_, k.op, k.first)) continue;
      if (c_.uneven_sizes().contains(k.axis)) continue;
      const std::int64_t fits = greatest_common_divisor(c_.local(k.op, k.first.factor), k.size);
      if (fits == 1 || fits == k.size) continue;
      edit_.split(c_.mesh.parts_of(k.where()).axes[0], fits);
      for (const conflict& each : state_.conflicts)
        if (each.axis == k.axis) edit_.mark(each.op);
      return true;
    }
    return false;
  }
};

}  // namespace partita::core_detail
