/// The rules of the fused lowering: the layout of each value on a device, and the collectives that
/// establish it. Shared by the lowering and by the code that only counts.
///
/// Source    PartIR, section 6; the rules for sums are in spmd/pending_sums.hpp and in the comment
///           of `finish`
#pragma once

#include <cstdint>

#include <partita/op/fold.hpp>
#include <partita/spmd/halo.hpp>
#include <partita/spmd/halo_messages.hpp>
#include <partita/spmd/lowered.hpp>
#include <partita/spmd/pending_sums.hpp>
#include <partita/spmd/repeated_operands.hpp>
#include <partita/spmd/reshard.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// True if the results of the op on shards are operands of the same op again, because of its loops.
constexpr bool has_again(const core_program& c, op_id o) {
  const factor* const factors = c.map.factors_of(o);
  for (const auto& l : c.nest_of(o))
    if (l.factor != any_factor && factors[l.factor].again && c.mesh.size(l.axis) > 1) return true;
  return false;
}
/// The gather of the results of such an op; without axes for other ops.
constexpr collective gather_again(const core_program& c, op_id o) {
  collective what;
  what.kind = collective::all_gather;
  const factor* const factors = c.map.factors_of(o);
  for (const auto& l : c.nest_of(o))
    if (l.factor != any_factor && factors[l.factor].again && c.mesh.size(l.axis) > 1)
      what.axes.push_back(l.axis, c.map.operand_dim(factors[l.factor], 0));
  return what;
}

/// How the results of an op on shards are combined if they become its operands again. Either all
/// devices gather and reduce all of them, or each device receives its part of every one of them,
/// reduces it, and the reduced parts are gathered where the unsharded result is needed.
///
/// With n devices and r bytes per result, a device sends (n - 1) r or 2 (n - 1) r / n bytes. The
/// second way is chosen if it sends less and some other dimension can be divided among the devices.
struct again_exchange {
  collective first, last;  ///< without axes: absent
  constexpr bool shares() const { return last.axes.count > 0; }
};

/// `rules` are those of the passes that are part of the lowering.
class local_layouts {
 public:
  constexpr local_layouts(const core_program& c, const passes& rules)
      : sums(c), c_(c), rules_(rules) {}

  pending_sums sums;  ///< states the layouts of values; call `find` before any query

  /// True if no collective is needed after the producer of a value: no sum is pending and no shard
  /// must be gathered.
  constexpr bool finished(value_id v) const {
    const op_id o = c_.p.producers[v];
    return sums.of(o).bits == 0 && !(may_share(o) && exchange_again(o).shares());
  }
  /// Finishes the pending sum of a value, whose layout is `have`, unless its user does so. Calls
  /// emit(collective, layout after it) and returns the final layout.
  ///
  /// Axes of a pending sum along which all uses slice the value are reduce-scattered; the other
  /// axes are all-reduced, once. The value is first sliced along axes that it is not summed over,
  /// if all uses slice it alike.
  template <class Emit>
  constexpr layout finish(value_id v, layout have, const Emit& emit) const {
    const op_id o = c_.p.producers[v];
    if (may_share(o))
      if (const again_exchange x = exchange_again(o); x.shares())
        return finish_share(v, x, have, emit);
    axis_set left = sums.of(o);
    if (left.empty() || sums.left_to_its_use(v)) return have;
    if (c_.p.is(o, op_role::wire) && sums.pending(v).empty()) return have;
    layout scattered, sliced;
    const span<const use> uses = c_.uses(v);
    const layout first = uses.empty() ? layout{} : sums.required_layout(uses[0]);
    for (bool progress = first.count > 0; progress;) {
      progress = false;
      for (int i = 0; i < c_.mesh.rank; ++i) {
        const int axis = c_.mesh.order[i];
        const bool sums_up = left.contains(axis);
        if (first.dim_of(axis) < 0 || have.dim_of(axis) >= 0 ||
            (sums_up ? !rules_.to_reduce_scatter : c_.returned[v]))
          continue;
        const int dim = sliced_next(v, have, axis, sums_up);
        if (dim == no_dim || (!sums_up && scattered.pieces(c_.mesh, dim) > 1)) continue;
        have.push_back(axis, dim);
        (sums_up ? scattered : sliced).push_back(axis, dim);
        left = left - axis_set::of(axis);
        progress = true;
      }
    }
    collective what;
    what.combine = sums.combine(o);
    if (sliced.count > 0) {
      what.kind = collective::all_slice;
      what.axes = sliced;
      emit(what, without(have, scattered));
    }
    if (scattered.count > 0) {
      what.kind = collective::reduce_scatter;
      what.axes = scattered;
      emit(what, have);
    }
    if (!left.empty()) emit(all_reduce(what.combine, left), have);
    return have;
  }
  /// Decides how the results of an op on shards are combined. Prefers to divide a dimension that
  /// all uses of a result slice.
  constexpr again_exchange exchange_again(op_id o) const {
    again_exchange x;
    x.first = gather_again(c_, o);
    if (x.first.members(c_.mesh) <= 2 || !may_share(o)) return x;
    const factor* const factors = c_.map.factors_of(o);
    again_exchange found = x;
    for (int f = 0; f < c_.map.ops[o].count; ++f) {
      if (!can_share(o, factors[f], x)) continue;
      const again_exchange each = shared(factors[f], x);
      if (!found.shares()) found = each;
      const value_id v = c_.p.op(o).result;
      for (int r = 0; r < c_.p.op(o).result_count; ++r)
        if (!c_.uses(v + r).empty() && keeps_share(v + r, each, sums.produced_layout(v + r)))
          return each;
    }
    return found;
  }
  constexpr collective all_reduce(combiner combine, axis_set axes) const {
    collective what;
    what.kind = collective::all_reduce;
    what.combine = combine;
    for (int axis : in_order(axes, c_.mesh)) what.axes.push_back(axis, no_dim);
    return what;
  }

  /// True if the rows of gathers may stay in place. This requires that sums may be reduce-scattered
  /// and that values with the right layout are not converted.
  constexpr bool keeps_rows() const {
    return (rules_.stationary_rows || c_.keeps_rows()) && rules_.to_reduce_scatter && rules_.cancel;
  }
  /// True if a value has the required layout. This holds for most values, which need no call of
  /// `bring`.
  constexpr bool stays(const layout& have, const layout& want) const {
    return have.packed == want.packed && have.count == want.count &&
           (rules_.cancel || want.count == 0);
  }
  /// Converts a value from layout `have` to layout `want`; calls emit(reshard_step). Returns true
  /// if a gather and a slice cancelled.
  template <class Emit>
  constexpr bool bring(value_id v, const layout& have, const layout& want, const Emit& emit) {
    if (stays(have, want) || (have == want && rules_.cancel)) return want.count > 0;
    return reshard(have, want, c_.p.type(v), c_.mesh, rules_, ways_, emit);
  }

 private:
  const core_program& c_;
  passes rules_;
  known_ways ways_;

  /// True for the few ops whose results may be divided among devices; a quick check.
  constexpr bool may_share(op_id o) const {
    const op_node& n = c_.p.ops[o];
    return n.def->role == op_role::compute && sums.view().nests[o].count > 0 &&
           (n.result_count > 1 || n.def->id == def<op::fold>.id);
  }
  constexpr bool can_share(op_id o, const factor& f, const again_exchange& x) const {
    const value_id v = c_.p.op(o).result;
    if (f.again || f.result_dim == no_dim || c_.map.operand_dim(f, 0) == no_dim) return false;
    const shape made = sums.produced_layout(v).local(c_.p.type(v).shape, c_.mesh);
    return made[f.result_dim] % x.first.members(c_.mesh) == 0;
  }
  constexpr again_exchange shared(const factor& f, const again_exchange& gather) const {
    again_exchange x;
    x.first.kind = collective::all_to_all;
    bool several = false;
    for (const auto& e : gather.first.axes) {
      x.first.axes.push_back(e.axis, c_.map.operand_dim(f, 0));
      x.last.axes.push_back(e.axis, f.result_dim);
      several = several || e.dim != gather.first.axes[0].dim;
    }
    if (several) {
      x.first.from = gather.first.axes;
    } else {
      x.first.gathered = gather.first.axes[0].dim;
      x.first.sliced = c_.map.operand_dim(f, 0);
    }
    return x;
  }
  /// True if a result has no uses, or if all of them slice it as it would be divided.
  constexpr bool keeps_share(value_id v, const again_exchange& x, layout have) const {
    if (c_.returned[v] || (!sums.sent.empty() && sums.sent[v] != 0)) return false;
    if (c_.uses(v).empty()) return true;
    if (!rules_.to_all_to_all) return false;
    for (const auto& e : x.last.axes) {
      if (sliced_next(v, have, e.axis, false) != e.dim) return false;
      have.push_back(e.axis, e.dim);
    }
    return true;
  }
  template <class Emit>
  constexpr layout finish_share(value_id v, const again_exchange& x, layout have,
                                const Emit& emit) const {
    if (!keeps_share(v, x, have)) {
      emit(x.last, have);
      return have;
    }
    for (const auto& e : x.last.axes) have.push_back(e.axis, e.dim);
    return have;
  }

  /// True if an axis divides a dimension here; it may not if the value is sent to a mesh on which
  /// the axis is smaller.
  constexpr bool divides(value_id v, const layout& have, int dim, int axis) const {
    if (sums.sent.empty() || dim == no_dim) return true;
    const std::int64_t left = c_.p.type(v).shape[dim] / have.pieces(c_.mesh, dim);
    return left % c_.mesh.size(axis) == 0;
  }
  /// The dimension that all users of a value slice along `axis`, directly after the slices it
  /// already has; see sliced_by_all_uses in core/match.hpp. `any`: fewer users than the axis has
  /// devices may slice another dimension, because sending each of them a shard costs less than the
  /// full value.
  constexpr int sliced_next(value_id v, const layout& have, int axis, bool any) const {
    int dim = no_dim;
    std::int64_t others = 0;
    const span<const use> uses = c_.uses(v);
    for (int k = 0, count = static_cast<int>(uses.size()); k < count; ++k) {
      const layout want = sums.required_layout(uses[k]);
      const int d = want.dim_of(axis);
      if (d < 0) return no_dim;
      if (dim == no_dim && is_next(want, have, axis, d)) dim = d;
      if (d == dim && is_next(want, have, axis, d)) continue;
      if (!any || ++others >= c_.mesh.size(axis)) return no_dim;
    }
    return divides(v, have, dim, axis) ? dim : no_dim;
  }
  /// True if `want` continues with `axis` where `have` ends along a dimension.
  static constexpr bool is_next(const layout& want, const layout& have, int axis, int dim) {
    int i = 0;
    for (const auto& e : want) {
      if (e.dim != dim) continue;
      while (i < have.count && have[i].dim != dim) ++i;
      if (e.axis == axis) return i == have.count;
      if (i == have.count || have[i].axis != e.axis) return false;
      ++i;
    }
    return false;
  }
};

/// The gather of the shards' totals along a dimension in which an op accumulates; without axes if
/// the dimension is not sharded.
constexpr collective gather_totals(const core_program& c, op_id o) {
  collective what;
  what.kind = collective::all_gather;
  const factor* const factors = c.map.factors_of(o);
  for (const auto& l : c.nest_of(o))
    if (l.factor != any_factor && factors[l.factor].carry != combiner::stack &&
        c.mesh.size(l.axis) > 1)
      what.axes.push_back(l.axis, factors[l.factor].result_dim);
  return what;
}

}  // namespace partita::spmd_detail
