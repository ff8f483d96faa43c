/// Pending reductions of a value.
#pragma once

#include <cstdint>

#include <partita/ir/mesh.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/prove/view.hpp>

namespace partita::prove_detail {

/// True if combining equal values returns that value, as maximum, minimum, and, or do.
constexpr bool is_idempotent(combiner c) {
  return c == combiner::max || c == combiner::min || c == combiner::logical_and ||
         c == combiner::logical_or;
}

/// The coordinates over which a value still has to be reduced: mesh axes and loops. With
/// `bound_axis`, it is reduced over it already.
struct pending {
  std::uint32_t axes = 0;
  combiner combine = combiner::stack;

  constexpr bool any() const { return axes != 0; }
  constexpr bool contains(int axis) const { return (axes >> axis & 1u) != 0; }
  /// False if other reductions are pending with another combiner, or over some of the same
  /// coordinates.
  constexpr bool add(std::uint32_t more, combiner by) {
    if (more == 0) return true;
    if ((axes & more & ~(1u << bound_axis)) != 0 || (axes != 0 && combine != by)) return false;
    axes |= more;
    combine = by;
    return true;
  }
  constexpr void remove(int axis) {
    axes &= ~(1u << axis);
    if (axes == 0) combine = combiner::stack;
  }
  friend constexpr bool operator==(const pending&, const pending&) = default;
};

}  // namespace partita::prove_detail
