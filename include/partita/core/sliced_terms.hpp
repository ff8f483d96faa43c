/// Sums that some uses slice and other uses take unsliced: lets the others take slices, too.
#pragma once

#include <cstdint>

#include <partita/core/match.hpp>
#include <partita/support/checked.hpp>

namespace partita::core_detail {

/// Suppose an optimizer slices a gradient and a norm squares it. Unsliced, the gradient needs an
/// all_reduce, which sends 2 (n - 1)/n of its bytes. If the norm sums the squares of a shard, the
/// gradient is reduce-scattered, (n - 1)/n, and one number is all-reduced.
///
/// y = f(s), z = g(slice s)  =>  y = all_reduce(f(slice s)), z = g(slice s)
///
/// When: s is summed over the axis (or computed from such a sum by ops with one operand and one
/// use), some uses slice it along the axis, and the other uses end in ops that reduce the sliced
/// dimension and whose results have less than half the bytes of s. Then the ops that take s
/// unsliced get a loop; propagation does the rest.
///
/// Cost: constant for each loop of an op and each of its operands.
class sliced_terms {
 public:
  constexpr sliced_terms(const loop_program& c, const loop_view& now) : c_(c), now_(now) {}

  /// Calls take(op, factor, axis) for each op that gets a loop as a consequence of the loops of op
  /// `o`. Most operands are ruled out quickly.
  template <class Take>
  constexpr void look_at(op_id o, const Take& take) {
    const op_node& n = now_.ops[o];
    const unsigned mine = now_.axes[o];
    PARTITA_WORK(n.operand_count);
    for (int i = 0; i < n.operand_count && mine != 0; ++i) {
      const value_id v = now_.operands[n.operand_begin + i];
      const op_id q = now_.producers[v];
      const unsigned axes = mine & (now_.nests[q].sums | ~unsigned{now_.axes[q]});
      if (axes != 0 && now_.use_ranges[v].count > 1) look_at(o, i, v, axes, take);
    }
  }

 private:
  static constexpr int most_uses = 64, most_ops = 16, most_steps = 4;

  const loop_program& c_;
  const loop_view& now_;
  std::int64_t reduced_ = 0;  ///< bytes of the reduced results that replace the sum
  int left_ = 0;              ///< the number of ops that may still be visited

  template <class Take>
  constexpr void look_at(op_id o, int operand, value_id v, unsigned axes, const Take& take) {
    const nest loops = c_.nest_of(o);
    for (int k = 0; k < loops.count; ++k) {
      const loop l = loops.loops[k];
      if ((axes >> l.axis & 1u) == 0 || l.factor == any_factor || c_.mesh.size(l.axis) == 1 ||
          c_.uneven_sizes().contains(l.axis))
        continue;
      const int dim = now_.dim_of(now_.factors[now_.maps[o].begin + l.factor], operand);
      if (dim != no_dim && is_worth_it(v, l.axis, dim)) add_loops(v, l.axis, dim, take);
    }
  }
  constexpr bool has_loop(op_id o, int axis) const { return (now_.axes[o] >> axis & 1u) != 0; }

  static constexpr bool is_plain(const op_node& n) {
    return (n.def->role == op_role::compute || n.def->role == op_role::tag) && n.result_count == 1;
  }
  /// True if a value is a sum of terms along an axis.
  constexpr bool is_sum(value_id v, int axis) const {
    op_id o = now_.producers[v];
    for (int i = 0; i < most_steps && !has_loop(o, axis); ++i) {
      const op_node& n = now_.ops[o];
      if (!is_plain(n) || n.operand_count != 1) return false;
      const value_id x = now_.operands[n.operand_begin];
      if (now_.use_ranges[x].count != 1 || c_.returned[x]) return false;
      o = now_.producers[x];
    }
    return has_loop(o, axis) && (now_.nests[o].sums >> axis & 1u) != 0;
  }
  constexpr bool is_worth_it(value_id v, int axis, int dim) {
    const use_range& range = now_.use_ranges[v];
    if (range.count < 2 || range.count > most_uses || c_.returned[v] || !is_sum(v, axis))
      return false;
    bool whole = false;
    PARTITA_WORK(range.count);
    for (int i = 0; i < range.count; ++i) {
      const use& u = now_.uses[range.begin + i];
      if (!has_loop(u.op, axis))
        whole = true;
      else if (!slices(u, v, axis, dim))
        return false;
    }
    if (!whole) return false;
    reduced_ = 0;
    left_ = most_ops;
    if (!can_follow(v, axis, dim)) return false;
    tensor_type piece = now_.types[v];
    now_.produced_layout(v).slice(piece.shape, c_.mesh);
    return saturating_add(reduced_, reduced_) < piece.bytes();
  }
  constexpr bool slices(const use& u, value_id v, int axis, int dim) const {
    const int f = loop_over(now_, u.op, axis).factor;
    if (f == any_factor) return false;
    if (now_.dim_of(now_.factors[now_.maps[u.op].begin + f], u.operand) != dim) return false;
    const op_id o = now_.producers[v];
    return next_along(now_, u.op, u.operand, o, now_.ops[o].result - v - 1, dim, axis);
  }
  /// True if all users of a value can take slices of it, up to the ops that reduce it.
  constexpr bool can_follow(value_id v, int axis, int dim) {
    if (c_.returned[v]) return false;
    const use_range& range = now_.use_ranges[v];
    PARTITA_WORK(range.count);
    for (int i = 0; i < range.count; ++i) {
      const use& u = now_.uses[range.begin + i];
      if (has_loop(u.op, axis)) {
        if (!slices(u, v, axis, dim)) return false;
        continue;
      }
      const use* const before = i > 0 ? &now_.uses[range.begin + i - 1] : nullptr;
      if (before == nullptr || before->op != u.op) {
        if (!follows(u, v, axis, dim)) return false;
      } else if (factor_for(u, v, axis, dim) != factor_for(*before, v, axis, dim)) {
        return false;  // unlike in g * g, the operands need different factors
      }
    }
    return true;
  }
  /// The factor that an op without a loop along the axis could slice, or any_factor.
  constexpr int factor_for(const use& u, value_id v, int axis, int dim) const {
    const op_node& n = now_.ops[u.op];
    if (!is_plain(n)) return any_factor;
    if (!alike(now_.layout_at(u.op, u.operand, 0), now_.produced_layout(v), dim)) return any_factor;
    const int f = front_factor(c_, now_, u.op, u.operand, dim);
    if (f == any_factor) return any_factor;
    const factor& mine = now_.factors[now_.maps[u.op].begin + f];
    const bool plain = !mine.halo && !mine.offset && mine.carry == combiner::stack;
    const bool good =
        plain && may_take(c_, u.op, f, mine, axis) && c_.local(u.op, f) % c_.size(u.op, axis) == 0;
    return good ? f : any_factor;
  }
  constexpr bool follows(const use& u, value_id v, int axis, int dim) {
    const int f = factor_for(u, v, axis, dim);
    if (f == any_factor || left_-- == 0) return false;
    const factor& mine = now_.factors[now_.maps[u.op].begin + f];
    const value_id made = now_.ops[u.op].result;
    if (mine.combine != combiner::stack) {
      tensor_type piece = now_.types[made];
      now_.produced_layout(made).slice(piece.shape, c_.mesh);
      reduced_ = saturating_add(reduced_, piece.bytes());
      return true;
    }
    return mine.result_dim != no_dim && now_.use_ranges[made].count > 0 &&
           can_follow(made, axis, mine.result_dim);
  }
  /// True if two layouts slice a dimension along the same axes.
  static constexpr bool alike(const layout& a, const layout& b, int dim) {
    int i = 0, k = 0;
    while (true) {
      while (i < a.count && a[i].dim != dim) ++i;
      while (k < b.count && b[k].dim != dim) ++k;
      if (i == a.count || k == b.count) return i == a.count && k == b.count;
      if (a[i++].axis != b[k++].axis) return false;
    }
  }
  template <class Take>
  constexpr void add_loops(value_id v, int axis, int dim, const Take& take) const {
    const use_range range = now_.use_ranges[v];
    for (int i = 0; i < range.count; ++i) {
      const use u = now_.uses[range.begin + i];
      if (!has_loop(u.op, axis)) take(u.op, factor_for(u, v, axis, dim), axis);
    }
  }
};

}  // namespace partita::core_detail
