/// The rule of collectives: they change layouts and finish reductions.
#pragma once

#include <partita/ir/collective.hpp>
#include <partita/prove/kernel/claim.hpp>

namespace partita::prove_detail {

/// Changes a claim about the operand of a collective into one about its result. False if the result
/// is not a block of a source value.
///
/// Law       an all_gather undoes the minor axes of each dimension, an all_slice adds them; an
///           all_reduce finishes the reduction over its axes; a renumbered permute renames axes
class collective_rule {
 public:
  constexpr collective_rule(const collective& what, const mesh& m) : what_(what), mesh_(m) {}

  constexpr bool apply(shard_claim& c) const {
    switch (what_.kind) {
      case collective::all_gather:
        return gather(c, what_.axes);
      case collective::all_slice:
        return slice(c, what_.axes);
      case collective::all_reduce:
        return reduce(c);
      case collective::reduce_scatter:
        return reduce(c) && slice(c, what_.axes);
      case collective::all_to_all:
        return gather(c, what_.gathers()) && slice(c, what_.axes);
      case collective::permute:
        break;
    }
    return rename(c);
  }

 private:
  const collective& what_;
  const mesh& mesh_;

  constexpr bool gather(shard_claim& c, const layout& axes) const {
    const layout gathered = without_trivial_axes(axes, mesh_);
    axis_set removed;
    for (const auto& e : gathered) {
      if (c.is_free(e.dim)) {
        if (c.varies().contains(e.axis)) return false;
        continue;
      }
      if (!ends_with(axes_along(c.sharding, e.dim), axes_along(gathered, e.dim))) return false;
      removed.insert(e.axis);
    }
    layout kept;
    for (const auto& e : c.sharding)
      if (!removed.contains(e.axis)) kept.push_back(e.axis, e.dim);
    c.sharding = kept;
    return true;
  }
  static constexpr bool ends_with(const axis_list& all, const axis_list& end) {
    if (all.count < end.count) return false;
    for (int i = 0; i < end.count; ++i)
      if (all.axes[all.count - end.count + i] != end.axes[i]) return false;
    return true;
  }
  constexpr bool slice(shard_claim& c, const layout& axes) const {
    for (const auto& e : without_trivial_axes(axes, mesh_)) {
      if (c.is_free(e.dim)) continue;
      if (c.varies().contains(e.axis)) return false;
      c.sharding.push_back(e.axis, e.dim);
    }
    return true;
  }
  /// A maximum (minimum, and, or) of equal values is that value.
  constexpr bool reduce(shard_claim& c) const {
    axis_set axes;
    for (const auto& e : what_.axes)
      if (mesh_.size(e.axis) > 1) axes.insert(e.axis);
    const bool once = what_.combine == combiner::max || what_.combine == combiner::min ||
                      what_.combine == combiner::logical_and ||
                      what_.combine == combiner::logical_or;
    if (c.pending.empty() || c.combine != what_.combine)
      return axes.empty() || (once && (c.varies() & axes).empty());
    const axis_set open = axes - c.pending;
    if (!open.empty() && (!once || !(c.varies() & open).empty())) return false;
    c.pending = c.pending - axes;
    return true;
  }
  /// The i-th axis of `from` becomes the i-th axis of `axes`.
  constexpr bool rename(shard_claim& c) const {
    if (what_.map.form != device_map::renumbered) return false;
    std::int8_t to[max_axes] = {};
    for (int a = 0; a < max_axes; ++a) to[a] = static_cast<std::int8_t>(a);
    for (int i = 0; i < what_.from.count; ++i) {
      if (mesh_.size(what_.from[i].axis) != mesh_.size(what_.axes[i].axis)) return false;
      to[what_.from[i].axis] = what_.axes[i].axis;
    }
    layout renamed;
    for (const auto& e : c.sharding) renamed.push_back(to[e.axis], e.dim);
    axis_set pending;
    for (int a = 0; a < mesh_.rank; ++a)
      if (c.pending.contains(a)) pending.insert(to[a]);
    c.sharding = renamed;
    c.pending = pending;
    return true;
  }
};

}  // namespace partita::prove_detail
