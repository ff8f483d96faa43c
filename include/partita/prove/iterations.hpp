/// Iterations instead of devices: a loop that computes step by step what the source computes in one
/// op.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/op/combine.hpp>
#include <partita/prove/moving.hpp>
#include <partita/prove/partial.hpp>

namespace partita::prove_detail {

constexpr void lift(workspace& w, const program& p, op_id o, claim_list& to);
constexpr bool only_moves(const collective& what);

/// Gives an input of a nested program all claims about the value outside.
constexpr void pass(workspace& w, const claim_list& from, value_id v, claim_list& to,
                    value_id input) {
  for (int c = from.first[v]; c >= 0; c = w.claims[c].next) w.add(to, input, claim(w.claims[c]));
}

/// The combiner of an op that combines two values; otherwise `stack`.
constexpr combiner combiner_of(const op_def& d) {
  for (combiner each : {combiner::add, combiner::multiply, combiner::max, combiner::min,
                        combiner::logical_and, combiner::logical_or})
    if (combining_op(each).id == d.id) return each;
  return combiner::stack;
}

/// A scope for a number of iterations. The iteration number is a coordinate, like that of a device
/// along an axis.
class iterations {
 public:
  constexpr iterations(workspace& w, std::int64_t count)
      : w_(w), axis_(max_axes + w.depth++), count_(count) {}
  iterations(const iterations&) = delete;
  iterations& operator=(const iterations&) = delete;
  constexpr ~iterations() { --w_.depth; }

  constexpr bool possible() const { return axis_ < bound_axis && count_ >= 1; }
  constexpr int axis() const { return axis_; }
  /// True if a value is the same in all iterations.
  constexpr bool is_same(const claim& c) const {
    return !c.sums.contains(axis_) && !w_.all.views[c.view].depends_on(axis_);
  }
  /// Records the number of the iteration.
  constexpr void count(claim_list& inside, value_id to) {
    if (count_ < 2 || !are_counted(dtype::i32, 0, count_)) return;
    view index(0, 1);
    index.add(on_axis(axis_), 0, count_, 1);
    w_.add(inside, to, w_.all.terms.positions(dtype::i32), index, {});
  }
  /// Records element i of the first dimension of a value, in iteration i.
  constexpr void take_slice(const claim_list& from, value_id v, claim_list& inside, value_id to) {
    for (int c = from.first[v]; c >= 0; c = w_.claims[c].next) {
      const claim known = w_.claims[c];
      const view& seen = w_.all.views[known.view];
      int begin = 0;
      const int end = seen.find(0, begin);
      if (end > begin + 1 || (end == begin + 1 && seen.digits[begin].extent != count_)) continue;
      w_.add(inside, to, known.term,
             with_owners(seen, seen.rank - 1,
                         [&](int d) { return d == 0 ? int{on_axis(axis_)} : d - 1; }),
             known.sums, known.scale);
    }
  }
  /// Records that element i of the first dimension is the result of iteration i.
  constexpr void give_slice(const claim_list& inside, value_id v, claim_list& to, value_id result) {
    for (int c = inside.first[v]; c >= 0; c = w_.claims[c].next) {
      const claim known = w_.claims[c];
      if (known.sums.contains(axis_)) continue;
      const view& seen = w_.all.views[known.view];
      int begin = 0;
      if (seen.find(on_axis(axis_), begin) > begin + 1) continue;
      view v_out = with_owners(seen, seen.rank + 1, [](int d) { return d + 1; });
      for (int i = 0; i < v_out.count; ++i)
        if (v_out.digits[i].owner == on_axis(axis_)) v_out.digits[i].owner = 0;
      w_.add(to, result, known.term, v_out, known.sums, known.scale);
    }
  }
  /// Records a value that is joined with another one in each iteration (if that is the same one,
  /// once is enough), or the value of the last iteration. `before`: its value at the start of an
  /// iteration; `starts`: true if it starts as the identity of a combiner.
  template <class Starts>
  constexpr void give_joined(const program& body, value_id before, value_id out,
                             const claim_list& inside, const Starts& starts, claim_list& to,
                             value_id result) {
    for (int c = inside.first[out]; c >= 0; c = w_.claims[c].next)
      if (is_same(w_.claims[c])) w_.add(to, result, claim(w_.claims[c]));
    const tensor_type& type = body.type(out);
    const auto join = [&](combiner combine, value_id both, value_id other, const vec<op_id>& moved,
                          const vec<op_id>& after) {
      if (!starts(combine)) return;
      const claim_list added = moved_on(body, after, both, inside, other);
      for (int c = added.first[out]; c >= 0; c = w_.claims[c].next) {
        claim joined = with_factor(w_.claims[c], combine);
        // (If the value is otherwise pending, iterations may hold different terms.)
        const bool alike = !joined.sums.any() || joined.sums.combine == combine;
        const bool again =
            is_same(joined) && alike && (is_idempotent(combine) || w_.is_identity(joined, combine));
        const bool parts = joined.sums.contains(axis_);
        view v = w_.all.views[joined.view];
        if (!again && !reduce_axis(joined, v, axis_, count_, combine, type.element)) continue;
        joined.view = w_.number(v, joined.term);
        if (comes_back(body, before, moved, after, out, joined, parts))
          close(w_, type, result, joined, to);
      }
    };
    for_each_join(body, before, out, join);
  }
  /// The same if the combination over all iterations is known otherwise: `totals(combiner, value)`
  /// returns claims about a value of the body, combined over all iterations.
  template <class Starts, class Totals>
  constexpr void give_total(const program& body, value_id before, value_id out,
                            const Starts& starts, const Totals& totals, claim_list& to,
                            value_id result) {
    const auto join = [&](combiner combine, value_id both, value_id other, const vec<op_id>& moved,
                          const vec<op_id>& after) {
      if (!starts(combine)) return;
      const claim_list all = moved_on(body, after, both, totals(combine, other), other);
      for (int c = all.first[out]; c >= 0; c = w_.claims[c].next) {
        const claim joined = with_factor(w_.claims[c], combine);
        if (comes_back(body, before, moved, after, out, joined, true)) w_.add(to, result, joined);
      }
    };
    for_each_join(body, before, out, join);
  }

 private:
  workspace& w_;
  int axis_;
  std::int64_t count_;

  /// A claim with its factor if the combined values have it, too. Otherwise the factor belongs to
  /// the term.
  constexpr claim with_factor(const claim& c, combiner by) const {
    const bool extreme = by == combiner::max || by == combiner::min;
    return by == combiner::add || (extreme && c.scale > 0) ? c : w_.unscaled(c);
  }
  /// Calls `join` for each way in which the result is the previous value joined with another one:
  /// `join(combiner, result of both, the other one, moves of the previous one, moves of the
  /// result)`.
  template <class Join>
  constexpr void for_each_join(const program& body, value_id before, value_id out,
                               const Join& join) {
    const vec<op_id> after = moves_to(body, out);
    const op_id o = body.producer(after.empty() ? out : body.operand(after.back(), 0));
    const combiner combine = combiner_of(*body.op(o).def);
    if (combine == combiner::stack) return;
    for (int side = 0; side < 2; ++side) {
      const vec<op_id> moved = moves_to(body, body.operand(o, side));
      const value_id first = moved.empty() ? body.operand(o, side) : body.operand(moved.back(), 0);
      if (first == before)
        join(combine, body.op(o).result, body.operand(o, 1 - side), moved, after);
    }
  }
  /// The ops that only move the elements of a result, the last one first.
  static constexpr vec<op_id> moves_to(const program& body, value_id v) {
    vec<op_id> list;
    for (op_id o = body.producer(v); is_move(body, o); o = body.producer(body.operand(o, 0)))
      list.push_back(o);
    return list;
  }
  static constexpr bool is_move(const program& body, op_id o) {
    const op_def& d = *body.op(o).def;
    if (body.op(o).operand_count != 1) return false;
    return moves_all(d) || d.identity || (d.collective && only_moves(body.collective_of(o)));
  }
  /// Applies these ops (the last one first) to the claims about a value.
  constexpr claim_list moved_on(const program& body, const vec<op_id>& moves, value_id given,
                                const claim_list& known, value_id v) {
    claim_list list(body);
    pass(w_, known, v, list, given);
    const int lost = w_.lost;
    for (std::size_t i = moves.size(); i-- > 0;) lift(w_, body, moves[i], list);
    w_.lost = lost;
    return list;
  }
  /// True if the value at the start of an iteration is moved back to its previous place. (It is the
  /// same on devices that have the same joined value, since it started so, and pending likewise. If
  /// only the sum of all iterations is known, the `parts` of each may differ between devices.)
  constexpr bool comes_back(const program& body, value_id before, const vec<op_id>& moved,
                            const vec<op_id>& after, value_id out, const claim& joined,
                            bool parts) {
    if (moved.empty() && after.empty()) return true;
    tensor_type type = body.type(before);
    view v(type.shape);
    pending sums;
    for (int a = 0; a < w_.mesh.rank; ++a) {
      if (joined.sums.contains(a)) sums.add(1u << a, joined.sums.combine);
      const bool differs = parts || w_.all.views[joined.view].depends_on(a);
      if (joined.sums.contains(a) || !differs) continue;
      if (type.shape.rank == max_rank) return false;
      v.start[v.dims] = v.beyond[v.dims] = 0;
      v.add(on_axis(a), v.dims++, w_.mesh.size(a), 1);
      type.shape.push_back(w_.mesh.size(a));
    }
    const int t = w_.all.terms.fresh(type);
    claim_list entered(body);
    w_.add(entered, before, t, v, sums);
    const value_id first = moved.empty() ? before : body.op(moved[0]).result;
    entered = moved_on(body, moved, before, entered, before);
    entered =
        moved_on(body, after, after.empty() ? out : body.operand(after.back(), 0), entered, first);
    for (int c = entered.first[out]; c >= 0; c = w_.claims[c].next)
      if (w_.claims[c] == claim{t, w_.number(v, t), sums}) return true;
    return false;
  }
};

}  // namespace partita::prove_detail

#include <partita/prove/lifting.hpp>  // defines lift
