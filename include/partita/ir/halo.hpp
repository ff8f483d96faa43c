/// Halos: loops whose iterations see overlapping pieces of their operands.
#pragma once

#include <cstdint>

#include <partita/ir/tile_map.hpp>
#include <partita/support/span.hpp>

namespace partita {

/// The pieces of one operand, along the dimension that the factor slices: piece i is
/// [first + i * step, first + i * step + length), and may reach beyond the operand's ends.
struct halo_range {
  std::int64_t first = 0, step = 0, length = 0;
  /// What stands beyond the ends: the identity of this combiner (zero of a sum); of `stack` the
  /// other end, as in a ring; ...
  combiner fill = combiner::add;
  int fill_operand = -1;  ///< ... or what this operand, a scalar, says
  /// Pieces that would reach beyond an end are moved until they do not.
  bool inside = false;

  /// The plain slices of n elements.
  static constexpr halo_range exact(std::int64_t n, std::int64_t pieces) {
    return {0, n / pieces, n / pieces};
  }
  friend constexpr bool operator==(const halo_range&, const halo_range&) = default;
  /// Piece i is block i.
  constexpr bool plain(std::int64_t block) const {
    return first == 0 && step == block && length == block;
  }
  /// Piece i is the block pieces - 1 - i, whole.
  constexpr bool mirrored(std::int64_t block, std::int64_t pieces) const {
    return step == -block && length == block && first == (pieces - 1) * block;
  }
  /// Where piece i starts, of n elements in all.
  constexpr std::int64_t start(std::int64_t i, std::int64_t n) const {
    const std::int64_t at = first + i * step;
    if (!inside) return at;
    return at < 0 ? 0 : at > n - length ? n - length : at;
  }
  /// How far some piece i reaches beyond block i, below and above.
  constexpr std::int64_t below(std::int64_t block, std::int64_t pieces) const {
    if (inside) return length - block;
    const std::int64_t at_last = (pieces - 1) * (block - step) - first;
    return maximum(0, maximum(-first, at_last));
  }
  constexpr std::int64_t above(std::int64_t block, std::int64_t pieces) const {
    if (inside) return length - block;
    const std::int64_t at_first = first + length - block;
    return maximum(0, maximum(at_first, at_first + (pieces - 1) * (step - block)));
  }

 private:
  static constexpr std::int64_t maximum(std::int64_t a, std::int64_t b) { return a < b ? b : a; }
};

inline constexpr int max_halo_operands = 2;

/// Handed to an op's `halo` function: a loop over a factor with a halo cuts its dimensions into so
/// many pieces. The function says which pieces of its operands an iteration needs, and corrects the
/// attributes for them.
struct halo_context {
  span<const tensor_type> operands;  ///< before the cut, along the factor's dimensions
  const tensor_type& result;
  int operand_dims[max_halo_operands];  ///< that the factor slices, or no_dim
  int result_dim;                       ///< or no_dim
  std::int64_t pieces;
  vec<std::int64_t>& attrs;

  halo_range ranges[max_halo_operands] = {};  ///< by operand
  /// 0: an iteration makes its piece of the result. Else it makes so many elements, of which the
  /// first one stands where operand 0 starts, divided by `unit`.
  std::int64_t made = 0, unit = 1;
  bool possible = true;   ///< false: not into so many pieces
  bool identity = false;  ///< is the piece of operand 0 the result, with these attributes?

  constexpr std::int64_t operand_extent(int k) const {
    return operands[static_cast<std::size_t>(k)].shape[operand_dims[k]];
  }
};

}  // namespace partita
