/// Claims: which shard of a source value a local value is.
#pragma once

#include <cstdint>

#include <partita/ir/axis_set.hpp>
#include <partita/ir/layout.hpp>
#include <partita/ir/program.hpp>

namespace partita::prove_detail {

/// A fact about a local value. On each device, reduced over the devices along the axes of
/// `pending`, it is the block of the source value `of` that `sharding` assigns to this device.
///
/// Blocks have the extents of the local value. If they exceed the source value together, elements
/// at positions after its end are padding, about which nothing is known. `free` has a bit for each
/// dimension along which all elements of the source value are equal; such a dimension is not in the
/// layout, and the local extent is arbitrary.
struct shard_claim {
  value_id of = -1;  ///< -1: nothing is known
  layout sharding;
  axis_set pending;
  combiner combine = combiner::add;  ///< of the pending reduction
  std::uint8_t free = 0;
  bool starts_zero = false;  ///< a guess, see wire_forms: it may become pending in a loop

  constexpr bool known() const { return of >= 0; }
  constexpr bool is_free(int dim) const { return (free >> dim & 1u) != 0; }
  /// The axes along which devices have different elements.
  constexpr axis_set varies() const {
    axis_set s = pending;
    for (const auto& e : sharding) s.insert(e.axis);
    return s;
  }
};

/// The axes that slice a dimension, major to minor.
constexpr axis_list axes_along(const layout& l, int dim) {
  axis_list list;
  for (const auto& e : l)
    if (e.dim == dim) list.push_back(e.axis);
  return list;
}
constexpr bool same_axes(const axis_list& a, const axis_list& b) {
  if (a.count != b.count) return false;
  for (int i = 0; i < a.count; ++i)
    if (a.axes[i] != b.axes[i]) return false;
  return true;
}
/// The layout without axes of size 1, which slice nothing.
constexpr layout without_trivial_axes(const layout& l, const mesh& m) {
  layout kept;
  for (const auto& e : l)
    if (m.size(e.axis) > 1) kept.push_back(e.axis, e.dim);
  return kept;
}

}  // namespace partita::prove_detail
