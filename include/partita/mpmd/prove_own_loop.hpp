/// Proves that one microbatch at a time computes what a source computes in a loop of its own.
#pragma once

#include <cstdint>

#include <partita/mpmd/states.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/microbatch.hpp>
#include <partita/op/scan.hpp>
#include <partita/prove/kernel/kernel.hpp>

namespace partita::mpmd_detail {

/// The loop over microbatches of a source: the op that the pipeline states, or the first candidate.
/// -1 without such a loop.
constexpr op_id find_loop(const program& p, op_id stated, std::int64_t iterations) {
  const auto is_candidate = [&](op_id o) {
    if (o < 0 || o >= p.op_count() || p.op(o).def->id != def<op::scan>.id) return false;
    const op::scan::counts k(p.attrs(o));
    return k.length == iterations && !k.reversed && k.length >= 1;
  };
  if (is_candidate(stated)) return stated;
  for (op_id o = 0; o < p.op_count(); ++o)
    if (is_candidate(o)) return o;
  return -1;
}

/// Derives claims of the kernel about a program of one microbatch (see one_microbatch): about
/// values of the source around its loop, and about values of an iteration.
///
/// A state has its value of the source in each iteration, by induction, if it starts so and each
/// iteration leaves it so. The sum over all iterations of a + b is the sum of both sums; this holds
/// for all combiners.
class own_loop_checker {
 public:
  constexpr own_loop_checker(const program& source, op_id loop, const program& one)
      : source_(source),
        body_(source.region(loop, 0)),
        one_(one),
        loop_(loop),
        k_(source.attrs(loop)),
        outer_(source, on_),
        inner_(body_, on_),
        around_(one.types.size(), shard_claim{}),
        inside_(one.types.size(), shard_claim{}),
        totals_(one.types.size(), total{}),
        enters_as_(source.types.size(), -1) {
    vec<int> uses(body_.types.size(), 0);
    for (const value_id v : body_.operand_list) ++uses[v];
    for (int i = 0; i < k_.constants + k_.carried; ++i) {
      const int carried = i - k_.constants;
      const bool stays = carried < 0 || before(carried) == after(carried);
      if (stays) enters_as_[operand(i)] = body_.inputs[1 + i];
      if (carried >= 0) sums_.push_back(uses[before(carried)] == 1 ? sum_of(carried) : total{});
      if (!stays && sums_.back().of < 0) states_.push_back({carried, unused});
    }
  }
  /// Returns the first output that is not proved, or -1.
  constexpr int run() {
    for (int i = 0; i < source_.input_count(); ++i)
      around_[one_.inputs[i]].of = outer_.values().canonical(source_.inputs[i]);
    for (op_id o = 0; o < one_.op_count(); ++o) {
      visit(o);
      for (int r = 0; r < one_.op(o).result_count; ++r) close(one_.op(o).result + r);
    }
    for (const state& each : states_) wrong_state_ = wrong_state_ || each.seen == used;
    for (int i = 0; i < source_.output_count(); ++i)
      if (wrong_state_ ||
          around_[one_.outputs[i].value].of != outer_.values().canonical(source_.outputs[i].value))
        return i;
    return -1;
  }

 private:
  using shard_claim = prove_detail::shard_claim;
  /// The combination of a value of all iterations.
  struct total {
    value_id of = -1;
    combiner combine = combiner::stack;
  };
  enum progress : std::uint8_t { unused, used, left };
  struct state {
    int carried = -1;
    progress seen = unused;
  };

  const program &source_, &body_, &one_;
  op_id loop_;
  op::scan::counts k_;
  device_program on_;  ///< one device
  prove_detail::claim_kernel outer_, inner_;
  vec<shard_claim> around_, inside_;
  vec<total> totals_;
  vec<value_id> enters_as_;  ///< by value around the loop: the same value inside, or -1
  vec<total> sums_;          ///< by carried value: what iterations add, if they do nothing else
  vec<state> states_;        ///< by number
  bool wrong_state_ = false;

  constexpr value_id before(int i) const { return body_.inputs[1 + k_.constants + i]; }
  constexpr value_id after(int i) const { return body_.outputs[i].value; }
  constexpr value_id operand(int i) const {
    return outer_.values().canonical(source_.operand(loop_, i));
  }
  constexpr bool is_inside(value_id v, value_id of) const {
    return inside_[v].of == inner_.values().canonical(of);
  }
  constexpr total sum_of(int i) const {
    const op_id o = body_.producer(after(i));
    value_id start = source_.operand(loop_, k_.constants + i);
    while (source_.op(source_.producer(start)).def->id == def<op::broadcast_in_dim>.id)
      start = source_.operand(source_.producer(start), 0);
    const op_id from = source_.producer(start);
    if (!source_.op(from).def->constant || source_.attrs(from).size() != 1 ||
        body_.op(o).operand_count != 2)
      return {};
    const bool first = body_.operand(o, 0) == before(i);
    for (const combiner c : {combiner::add, combiner::multiply, combiner::max, combiner::min,
                             combiner::logical_and, combiner::logical_or})
      if (body_.op(o).def->id == combining_op(c).id &&
          (first || body_.operand(o, 1) == before(i)) &&
          source_.attrs(from)[0] == identity_bits(c, source_.type(start).element))
        return {inner_.values().canonical(body_.operand(o, first ? 1 : 0)), c};
    return {};
  }
  constexpr void visit(op_id o) {
    const op_node& n = one_.op(o);
    const auto is = [&](const op_def& d) { return n.def->id == d.id; };
    const value_id x = n.operand_count > 0 ? one_.operand(o, 0) : -1, made = n.result;
    const std::int64_t number = one_.attrs(o).size() > 0 ? one_.attrs(o)[0] : -1;
    state none;
    const bool known = number >= 0 && static_cast<std::size_t>(number) < states_.size();
    state& of = known ? states_[static_cast<std::size_t>(number)] : none;
    if (is(def<op::microbatch_index>)) {
      inside_[made].of = body_.inputs[0];
    } else if (is(def<op::microbatch_slice>)) {
      for (int i = k_.constants + k_.carried; i < k_.constants + k_.carried + k_.sliced; ++i)
        if (around_[x].of == operand(i)) inside_[made].of = body_.inputs[1 + i];
    } else if (is_state(n)) {
      if (!known || around_[x].of != operand(k_.constants + of.carried)) return;
      inside_[made].of = before(of.carried);
      if (of.seen == unused) of.seen = used;
    } else if (is(def<op::microbatch_stack>)) {
      for (int i = k_.carried; i < body_.output_count(); ++i)
        if (is_inside(x, after(i))) around_[made].of = source_.op(loop_).result + i;
    } else if (is_last_state(n)) {
      if (known && is_inside(x, after(of.carried)))
        around_[made].of = source_.op(loop_).result + of.carried;
    } else if (is(def<op::microbatch_sum>)) {
      totals_[made] = {inside_[x].of, static_cast<combiner>(one_.attrs(o)[0])};
    } else {
      if (is_next_state(n)) of.seen = left;
      if (is_next_state(n) && !(known && is_inside(x, after(of.carried)))) wrong_state_ = true;
      outer_.visit(one_, o, around_);
      inner_.visit(one_, o, inside_);
      if (n.operand_count == 2 && n.result_count == 1) add_totals(o);
    }
  }
  constexpr void add_totals(op_id o) {
    const op_def& d = *one_.op(o).def;
    const total a = totals_[one_.operand(o, 0)], b = totals_[one_.operand(o, 1)];
    if (a.of < 0 || b.of < 0 || a.combine != b.combine || a.combine == combiner::stack ||
        d.id != combining_op(a.combine).id)
      return;
    vec<value_id> both{a.of, b.of};
    prove_detail::source_values::sort_operands(d, both);
    if (const op_id found = inner_.values().first(d, {}, both); found >= 0)
      totals_[one_.op(o).result] = {body_.op(found).result, a.combine};
  }
  /// Finds what a value also is: the result of the loop that has its total, or an input of the
  /// body. Drops claims of other types.
  constexpr void close(value_id v) {
    shard_claim &outer = around_[v], &inner = inside_[v];
    for (int i = 0; totals_[v].of >= 0 && i < k_.carried; ++i)
      if (sums_[i].of == totals_[v].of && sums_[i].combine == totals_[v].combine)
        outer.of = source_.op(loop_).result + i;
    if (outer.known() && source_.type(outer.of) != one_.type(v)) outer = {};
    if (outer.known() && enters_as_[outer.of] >= 0)
      inner.of = inner_.values().canonical(enters_as_[outer.of]);
    if (inner.known() && body_.type(inner.of) != one_.type(v)) inner = {};
  }
};

}  // namespace partita::mpmd_detail
