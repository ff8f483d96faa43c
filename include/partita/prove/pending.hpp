/// What of a value is still to be reduced.
#pragma once

#include <cstdint>

#include <partita/ir/mesh.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/prove/view.hpp>

namespace partita::prove_detail {

/// Is the greatest of the same values that value? (So the least, whether all or some hold.)
constexpr bool is_idempotent(combiner c) {
  return c == combiner::max || c == combiner::min || c == combiner::logical_and ||
         c == combiner::logical_or;
}

/// Coordinates that values are reduced over before they are what they should be: of axes of the
/// mesh, and of loops. Of `bound_axis`, they are reduced over it already.
struct pending {
  std::uint32_t axes = 0;
  combiner combine = combiner::stack;

  constexpr bool any() const { return axes != 0; }
  constexpr bool contains(int axis) const { return (axes >> axis & 1u) != 0; }
  /// False: these are pending with another combiner, or some of the others are already.
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
