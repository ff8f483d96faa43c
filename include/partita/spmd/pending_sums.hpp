/// Decides where the sums of a core program are finished, and which layouts result.
///
/// A `#sum` loop leaves a pending sum: the devices along its axis hold terms. A collective finishes
/// the sum after the op, unless the op's only user can operate on the terms.
#pragma once

#include <cstdint>

#include <partita/core/accumulation.hpp>
#include <partita/core/core_program.hpp>
#include <partita/op/arithmetic.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/convert.hpp>
#include <partita/op/microbatch.hpp>
#include <partita/op/reduce.hpp>
#include <partita/op/reshape.hpp>
#include <partita/op/select.hpp>
#include <partita/op/transpose.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// The analysis. Cost: linear in ops; after changes, linear in the changed ops and those affected
/// by them.
class pending_sums {
 public:
  constexpr explicit pending_sums(const core_program& c) : c_(c) {}
  pending_sums(const pending_sums&) = delete;  // view() points into its arrays
  pending_sums& operator=(const pending_sums&) = delete;

  /// By value: true if its sum must be finished after its producer because it is sent. Empty if
  /// no value is sent.
  vec<char> sent;

  /// Analyzes the program. Without `defer` every sum is finished after its op.
  constexpr void find(bool defer) {
    trivial_ = {};
    for (int axis = 0; axis < c_.mesh.rank; ++axis)
      if (c_.mesh.size(axis) == 1) trivial_.insert(axis);
    deferred_.clear();
    pending_.clear();
    grow();
    if (!defer) return;
    find_accumulations();
    // Few calls: most ops have no sum and take none over.
    const bool others = !carried_.empty() || c_.padded();
    for (op_id o = c_.order.first(); o >= 0; o = c_.order.after(o)) {
      const op_node& n = program_.ops[o];
      if (others || program_.nests[o].sums != 0 || (n.def->linear && n.operand_count == 2) ||
          passes_on(o) || is_sum(o))
        settle(o);
    }
  }

  /// Updates the analysis after changes of loops or operands of the ops in `changed` (with
  /// `defer`). Adds the ops whose sums are now finished elsewhere. `is_changed`: by op, true if it
  /// is in the list.
  constexpr void update(vec<op_id>& changed, vec<char>& is_changed) {
    const bool other_ops = grow();
    const auto add = [&](op_id o) {
      if (is_changed[o]) return;
      is_changed[o] = 1;
      changed.push_back(o);
    };
    if (other_ops && !c_.nested.controls.empty()) {
      for (const accumulation& a : carried_) {
        undo(a);
        for (op_id o : ops_of(a)) add(o);
      }
      find_accumulations();
      for (const accumulation& a : carried_) add(a.last());
    }
    if (other_ops) {
      for (op_id o : taken_) {
        const op_node& n = c_.p.ops[o];
        is_taken_[o] = 0;
        deferred_[o] = {};
        pending_[n.result] = {};
        add(o);
      }
      taken_.clear();
    }
    vec<op_id> waiting;
    const auto wait = [&](op_id o) {
      if (is_waiting_[o]) return;
      is_waiting_[o] = 1;
      waiting.push_back(o);
    };
    const auto wait_for = [&](op_id o) {  // ops that may take over its sums
      const op_node& n = c_.p.ops[o];
      for (value_id v = n.result; v < n.result + n.result_count; ++v)
        if (c_.uses(v).size() == 1) wait(c_.uses(v)[0].op);
    };
    for (std::size_t i = 0, count = changed.size(); i < count; ++i) {
      wait(changed[i]);
      wait_for(changed[i]);
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      is_waiting_[waiting[i]] = 0;
      const op_id o = taker(waiting[i]);
      if (!settle(o)) continue;
      for (op_id each : moves_before(o)) add(each);
      const int sum = sum_of(o);
      if (sum < 0) {
        add(o);
        wait_for(o);
      } else {
        for (op_id each : ops_of(carried_[sum])) {
          add(each);
          wait_for(each);
        }
      }
    }
  }

  /// The layout in which an op produces a value, before its sum is finished. Loops over axes of
  /// size 1, and loops whose axis is deferred, are ignored.
  constexpr layout produced_layout(value_id v) const {
    const op_id o = program_.producers[v];
    return program_.layout_at(o, program_.ops[o].result - v - 1,
                              unsigned{trivial_.bits} | deferred_in_[o].bits);
  }
  /// The layout in which an op needs an operand, ignoring the same loops.
  constexpr layout required_layout(const use& u) const {
    return program_.layout_at(u.op, u.operand, unsigned{trivial_.bits} | deferred_in_[u.op].bits);
  }
  /// A view of the program as of the last analysis.
  constexpr const loop_view& view() const { return program_; }

  /// The axes along which the results of an op are terms of a sum.
  constexpr axis_set of(op_id o) const {
    return {static_cast<std::uint8_t>((program_.nests[o].sums & ~unsigned{trivial_.bits}) |
                                      deferred_in_[o].bits)};
  }
  /// The op whose results are the terms: skips ops that only resize them.
  constexpr op_id maker(op_id o) const {
    while (passes_on(o)) o = c_.p.producer(c_.p.operand(o, 0));
    return o;
  }
  /// The combiner of an op's sum.
  constexpr combiner combine(op_id o) const {
    const nest n = c_.nest_of(o);
    const factor* const factors = c_.map.factors_of(o);
    for (int i = 0; i < n.count; ++i)
      if (const int f = n.loops[i].factor; f != any_factor && factors[f].combine != combiner::stack)
        return factors[f].combine;
    return combiner::add;
  }
  /// The axes along which a value is a pending sum that its user could take over.
  constexpr axis_set pending(value_id v) const { return pending_[v]; }
  /// True if the user of the value operates on its terms.
  constexpr bool left_to_its_use(value_id v) const {
    return !pending_[v].empty() && only_use(v) && !deferred_[c_.uses(v)[0].op].empty();
  }

 private:
  const core_program& c_;
  axis_set trivial_;        ///< axes of size 1
  vec<axis_set> deferred_;  ///< by op: axes whose sum is deferred past its result
  vec<axis_set> pending_;   ///< by value: axes over which it is still to be summed
  vec<accumulation> carried_;
  /// By op: the index in `carried_` of the accumulation it belongs to, or -1; or empty.
  vec<int> sum_of_;
  vec<op_id> taken_;      ///< ops that terms passed through, and ops that took them over
  vec<char> is_taken_;    ///< by op: true if it is in `taken_`
  vec<char> is_waiting_;  ///< by op, in `update`
  loop_view program_ = {};
  const axis_set* deferred_in_ = nullptr;  ///< the data of `deferred_`

  /// Adapts the arrays to the program; returns true if it has more ops than before.
  constexpr bool grow() {
    const bool more = deferred_.size() < c_.p.ops.size();
    deferred_.resize(c_.p.ops.size());
    is_waiting_.resize(c_.p.ops.size(), 0);
    is_taken_.resize(c_.p.ops.size(), 0);
    pending_.resize(c_.p.types.size());
    program_ = c_.view();
    deferred_in_ = deferred_.data();
    return more;
  }
  constexpr vec<op_id> ops_of(const accumulation& a) const {
    vec<op_id> list{a.wire};
    if (a.own_start) list.push_back(c_.p.producer(a.start));
    for (const use& u : a.terms) list.push_back(op_id{u.op});
    return list;
  }
  constexpr int sum_of(op_id o) const { return sum_of_.empty() ? -1 : sum_of_[o]; }
  constexpr void find_accumulations() {
    carried_ = accumulations(c_);
    sum_of_.clear();
    if (!carried_.empty()) sum_of_.resize(c_.p.ops.size(), -1);
    for (int i = 0; i < static_cast<int>(carried_.size()); ++i)
      for (op_id o : ops_of(carried_[i])) sum_of_[o] = i;
  }
  constexpr void undo(const accumulation& a) {
    for (op_id o : ops_of(a)) deferred_[o] = {};
    leave_pending(a, {});
  }
  constexpr void leave_pending(const accumulation& a, axis_set axes) {
    for (const use& u : a.terms) pending_[c_.p.op(u.op).result] = axes;
    if (a.own_start) pending_[a.start] = axes;
    pending_[a.result] = axes;
  }

  constexpr axis_set loops_of(op_id o) const {
    return {static_cast<std::uint8_t>(program_.nests[o].sums & ~unsigned{trivial_.bits})};
  }
  constexpr bool only_use(value_id v) const {
    return c_.uses(v).size() == 1 && !c_.returned[v] && (sent.empty() || sent[v] == 0);
  }
  /// True if an op maps terms to terms unless something prevents it: ops that only resize, and the
  /// sum over microbatches, so that all microbatches are reduced once.
  constexpr bool passes_on(op_id o) const {
    const op_node& n = c_.p.ops[o];
    if (n.def->id == def<op::microbatch_sum>.id)
      return c_.p.attrs(o)[0] == static_cast<std::int64_t>(combiner::add);
    return c_.resizes(o);
  }

  // ---- Ops between a sum and the op that takes it over ------------------------------------------

  static constexpr int most_moves = 4;
  using move_list = vec<op_id>;

  /// True if an op only moves the elements of its operand or maps each one linearly. Division by a
  /// possible 0 does not qualify: 3 / 0 + 0 / 0 is not an infinity. A product qualifies, although
  /// an infinite factor or the overflow of a term could make a difference.
  constexpr bool moves(op_id o) const {
    const op_node& n = c_.p.ops[o];
    switch (n.def->id) {
      case def<op::transpose>.id:
      case def<op::reshape>.id:
      case def<op::negate>.id:
        return true;
      case def<op::multiply>.id:
        return !is_constant(c_.p.operand(o, 0)) || !is_constant(c_.p.operand(o, 1));
      case def<op::divide>.id:
        return is_floating(c_.p.type(n.result).element) && is_constant(c_.p.operand(o, 1));
      case def<op::select>.id:
        return chosen_zero(o) >= 0;
      case def<op::convert>.id:
        return widens(o);
      default:
        return c_.resizes(o);
    }
  }
  /// True if an op converts each number to a type that can represent it. Integers do not qualify,
  /// because their sum may wrap before the conversion.
  constexpr bool widens(op_id o) const {
    const op_node& n = c_.p.ops[o];
    const dtype to = c_.p.type(n.result).element, from = c_.p.type(c_.p.operand(o, 0)).element;
    return n.def->id == def<op::convert>.id && is_floating(to) && is_floating(from) &&
           size_of(to) > size_of(from);
  }
  /// The operand of a select that is zero everywhere, or -1.
  constexpr int chosen_zero(op_id o) const {
    for (int i = 1; i < 3; ++i)
      if (core_detail::is_zero(c_.p, c_.p.operand(o, i))) return i;
    return -1;
  }
  /// True if an op has another operand that is not a constant. That operand must be equal on all
  /// devices that have terms.
  constexpr bool looks_aside(op_id o) const {
    const op_node& n = c_.p.ops[o];
    for (int i = 0; i < n.operand_count; ++i)
      if (i != moved_by(o) && !is_constant(c_.p.operand(o, i))) return true;
    return false;
  }
  constexpr bool is_constant(value_id v) const {
    const op_node& n = c_.p.ops[c_.p.producers[v]];
    if (n.def->id != def<op::broadcast_in_dim>.id) return n.def->constant;
    return c_.p.op(c_.p.producer(c_.p.operand_list[n.operand_begin])).def->constant;
  }
  /// The operand of an op that it moves. For a product, the operand that is currently a pending
  /// sum, or the first of two.
  constexpr int moved_by(op_id o) const {
    const op_node& n = c_.p.ops[o];
    if (n.def->id == def<op::select>.id) return 3 - chosen_zero(o);
    if (n.def->id != def<op::multiply>.id) return 0;
    if (is_constant(c_.p.operand(o, 0))) return 1;
    return is_constant(c_.p.operand(o, 1)) || is_term(c_.p.operand(o, 0)) ? 0 : 1;
  }
  constexpr bool is_term(value_id v) const { return !pending_[v].empty() && only_use(v); }
  /// True if an op adds up elements.
  constexpr bool is_sum(op_id o) const {
    const op_node& n = c_.p.ops[o];
    return n.def->id == def<op::reduce>.id && n.operand_count == 1 &&
           c_.p.attrs(o)[0] == static_cast<std::int64_t>(combiner::add);
  }
  constexpr bool may_take(op_id o) const {
    const op_node& n = c_.p.ops[o];
    return (n.def->linear && n.operand_count == 2) || is_sum(o);
  }
  /// The op that could take over the terms of `o`, after ops that only move them; otherwise `o`.
  constexpr op_id taker(op_id o) const {
    op_id end = o;
    for (int i = 0; i < most_moves && moves(end); ++i) {
      const value_id v = c_.p.ops[end].result;
      if (!only_use(v)) return o;
      end = c_.uses(v)[0].op;
    }
    return may_take(end) ? end : o;
  }
  /// Calls f(value) for the operands of an op, or for the terms of the accumulation that it
  /// completes.
  template <class F>
  constexpr void for_each_term(op_id o, const F& f) const {
    if (const int sum = sum_of(o); sum >= 0)
      for (const use& u : carried_[sum].terms) f(c_.p.operand(u.op, u.operand));
    else
      for (int i = 0; i < c_.p.ops[o].operand_count; ++i) f(c_.p.operand(o, i));
  }
  /// The ops whose taker is `o`, in execution order for each operand.
  constexpr move_list moves_before(op_id o) const {
    move_list list;
    if (!may_take(o)) return list;
    for_each_term(o, [&](value_id v) { add_moves(list, v, most_moves); });
    return list;
  }
  constexpr void add_moves(move_list& list, value_id v, int most) const {
    if (most == 0 || !only_use(v) || !moves(c_.p.producer(v))) return;
    const op_id o = c_.p.producer(v);
    if (!may_move_either(o)) add_moves(list, c_.p.operand(o, moved_by(o)), most - 1);
    for (int i = 0; i < 2 && may_move_either(o); ++i) add_moves(list, c_.p.operand(o, i), most - 1);
    list.push_back(o);
  }
  /// True for a product if either operand may be a pending sum.
  constexpr bool may_move_either(op_id o) const {
    return c_.p.ops[o].def->id == def<op::multiply>.id && !is_constant(c_.p.operand(o, 0)) &&
           !is_constant(c_.p.operand(o, 1));
  }
  /// Lets terms pass through the ops that move a value, for one operand of each product, and
  /// appends those ops.
  constexpr void let_pass(move_list& passed, value_id v, int most) {
    if (most == 0 || !only_use(v) || !moves(c_.p.producer(v))) return;
    const op_id o = c_.p.producer(v);
    const std::size_t begin = passed.size();
    if (may_move_either(o)) {
      let_pass(passed, c_.p.operand(o, 0), most - 1);
      if (!is_term(c_.p.operand(o, 0))) stop(passed, begin);
    }
    if (passed.size() == begin) let_pass(passed, c_.p.operand(o, moved_by(o)), most - 1);
    pass_on(o);
    passed.push_back(o);
  }
  /// Stops the terms at the ops of a list from index `begin` on, and removes these ops.
  constexpr void stop(move_list& list, std::size_t begin) {
    for (std::size_t i = begin; i < list.size(); ++i) stop(list[i]);
    while (list.size() > begin) list.pop_back();
  }
  constexpr void take(op_id o) {
    if (is_taken_[o] != 0) return;
    is_taken_[o] = 1;
    taken_.push_back(o);
  }

  /// Decides which sums an op takes over and which it leaves pending. Returns true if that changed,
  /// for the op or for the ops that move its operands.
  constexpr bool settle(op_id o) {
    if (const op_id end = taker(o); end != o) return settle(end);
    const op_node& n = c_.p.ops[o];
    const int sum = sum_of(o);
    if (sum >= 0 && carried_[sum].last() != o) return settle(carried_[sum].last());
    if (n.result_count != 1) return false;
    const value_id v = n.result;
    axis_set &deferred_now = deferred_[o], &pending_now = pending_[v];
    const axis_set deferred = deferred_now, pending = pending_now, sums = loops_of(o);
    deferred_now.bits = 0;
    if (sum >= 0) undo(carried_[sum]);
    pending_now.bits = sums.bits != 0 && combine(o) == combiner::add ? sums.bits : 0;
    if (passes_on(o)) pass_on(o);
    bool moved = false;
    if (may_take(o)) {
      const move_list list = moves_before(o);
      vec<axis_set> before;
      for (op_id each : list) {
        before.push_back(deferred_[each]);
        deferred_[each] = pending_[c_.p.op(each).result] = {};
      }
      move_list passed;
      for_each_term(o, [&](value_id v) { let_pass(passed, v, most_moves); });
      if (sum >= 0) defer_accumulation(carried_[sum]);
      if (is_sum(o))
        reduce_before(o);
      else if (deferred_now.bits == 0)
        add_before(o);
      if (sum < 0 && !sends_less(o, passed)) deferred_now = pending_now = {};
      const bool taken = deferred_now.bits != 0;
      if (taken && !passed.empty()) take(o);
      if (!taken) stop(passed, 0);
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (!deferred_[list[i]].empty()) take(list[i]);
        moved = moved || deferred_[list[i]] != before[i];
      }
    }
    return moved || deferred_now.bits != deferred.bits || pending_now.bits != pending.bits;
  }
  /// True if the result of an op has fewer bytes than the sums it takes over, or if no sum grows on
  /// the way.
  constexpr bool sends_less(op_id o, const move_list& list) const {
    bool wider = false;
    for (op_id each : list) wider = wider || enlarges(each);
    if (!wider || deferred_[o].empty()) return true;
    std::int64_t before = 0;
    for (int i = 0; i < c_.p.ops[o].operand_count; ++i) {
      value_id v = c_.p.operand(o, i);
      for (int k = 0; k < most_moves && moves(c_.p.producer(v)); ++k)
        v = c_.p.operand(c_.p.producer(v), moved_by(c_.p.producer(v)));
      before += bytes(v);
    }
    return bytes(c_.p.ops[o].result) < before;
  }
  /// True if the result has more bytes than the moved operand: a wider type, or a scalar that
  /// becomes a tensor.
  constexpr bool enlarges(op_id o) const {
    return bytes(c_.p.ops[o].result) > bytes(c_.p.operand(o, moved_by(o)));
  }
  constexpr std::int64_t bytes(value_id v) const {
    tensor_type t = c_.p.type(v);
    produced_layout(v).slice(t.shape, c_.mesh);
    return t.bytes();
  }
  /// Finishes a sum before an op that moves it, unless the op only resizes it.
  constexpr void stop(op_id o) {
    deferred_[o] = pending_[c_.p.op(o).result] = {};
    if (c_.resizes(o)) pass_on(o);
  }
  /// all_reduce(a) + all_reduce(b) => all_reduce(a + b), for linear ops of two pending sums.
  ///
  /// When: both operands are summed over the same axes, have no other use and have the same layout,
  /// and the op needs this layout except for its own loops over those axes.
  constexpr void add_before(op_id o) {
    const value_id x = c_.p.operand(o, 0), y = c_.p.operand(o, 1);
    const axis_set axes = pending_[x];
    if (axes.empty() || axes != pending_[y] || x == y) return;
    if (!only_use(x) || !only_use(y)) return;
    deferred_[o] = axes;
    const layout lx = produced_layout(x), ly = produced_layout(y);
    if (lx == ly && lx == required_layout({o, 0}) && lx == required_layout({o, 1}))
      pending_[c_.p.op(o).result] = axes;
    else
      deferred_[o] = {};
  }
  /// reduce(all_reduce(a)) => all_reduce(reduce(a)), which sends less, for a sum of elements.
  ///
  /// When: a has no other use and the layout that the op needs, and the op has no loop over the
  /// axes.
  constexpr void reduce_before(op_id o) {
    const value_id x = c_.p.operand(o, 0);
    const axis_set axes = pending_[x];
    if (axes.empty() || !only_use(x) || (program_.axes[o] & axes.bits) != 0) return;
    if (!(produced_layout(x) == required_layout({o, 0}))) return;
    if (loops_of(o).bits != 0 && combine(o) != combiner::add) return;
    deferred_[o] = axes;
    pending_[c_.p.op(o).result] = axes | loops_of(o);
  }
  /// pad(all_reduce(a)) => all_reduce(pad(a)), and likewise for a slice that only converts between
  /// true and padded sizes. A padded program thus has its sums where an even one has them.
  ///
  /// transpose(all_reduce(a)) => all_reduce(transpose(a)), and likewise for other linear ops if an
  /// op after them takes over the sum: a reshape, a negation, a product, a select between a and 0,
  /// a conversion to a wider type.
  ///
  /// When: a has no other use and has the layout that the op needs, except for the op's own loops
  /// over those axes. An op with other operands must have no such loops, and the other operands
  /// must not be pending sums.
  constexpr void pass_on(op_id o) {
    const int moved = moved_by(o);
    const value_id x = c_.p.operand(o, moved);
    deferred_[o] = pending_[c_.p.op(o).result] = {};
    if (pending_[x].empty() || !only_use(x)) return;
    if (looks_aside(o)) {
      if ((program_.axes[o] & pending_[x].bits) != 0) return;
      for (int i = 0; i < c_.p.ops[o].operand_count; ++i)
        if (i != moved && !pending_[c_.p.operand(o, i)].empty() && only_use(c_.p.operand(o, i)))
          return;
    }
    deferred_[o] = pending_[x];
    if (produced_layout(x) == required_layout({o, moved}))
      pending_[c_.p.op(o).result] = pending_[x];
    else
      deferred_[o] = {};
  }
  /// c = c + all_reduce(y) in a loop => c = c + y, and all_reduce(c) after the loop.
  ///
  /// When: c starts at zero and has no other use, and y has the layout of c except for c's own
  /// loops over the axes of the sum. Gradients accumulated over microbatches are thus reduced once.
  constexpr void defer_accumulation(const accumulation& a) {
    const auto term = [&](const use& u) { return c_.p.operand(u.op, u.operand); };
    const axis_set axes = pending_[term(a.terms[0])];
    for (const use& u : a.terms)
      if (axes.empty() || pending_[term(u)] != axes || !only_use(term(u))) return;
    for (op_id o : ops_of(a)) deferred_[o] = axes;
    const layout l = produced_layout(a.result);
    bool alike = !a.own_start || produced_layout(a.start) == l;
    for (const use& u : a.terms)
      alike = alike && produced_layout(term(u)) == l && produced_layout(c_.p.op(u.op).result) == l;
    for (int i = 0; i < 2; ++i) {
      alike = alike && required_layout({a.wire, i}) == l;
      for (const use& u : a.terms) alike = alike && required_layout({u.op, i}) == l;
    }
    if (!alike) return undo(a);
    leave_pending(a, axes);
  }
};

}  // namespace partita::spmd_detail
