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
  bool any = false;  ///< nothing depends on what stands beyond the ends

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
  /// Of all pieces, the least place where one starts and the greatest where one ends, counted from
  /// the start of block i.
  constexpr std::int64_t least(std::int64_t block, std::int64_t pieces) const {
    if (inside) return block - length;
    return minimum(first, first + (pieces - 1) * (step - block));
  }
  constexpr std::int64_t greatest(std::int64_t block, std::int64_t pieces) const {
    if (inside) return length;
    return length + maximum(first, first + (pieces - 1) * (step - block));
  }
  /// What pieces need of other blocks: for each block that lies `shift` blocks before their own
  /// (-shift behind it), in the order in which these lie, send(shift, from, elements) is told that
  /// some need elements [from, from + elements) of it. Beyond the ends of the operand there are
  /// none.
  template <class Send>
  constexpr void for_each_border(std::int64_t block, std::int64_t pieces, const Send& send) const {
    if (block <= 0) return;
    const std::int64_t ends = fill == combiner::stack ? pieces : pieces - 1;
    const std::int64_t low = maximum(-ends, floor_of(least(block, pieces), block)),
                       high = minimum(ends, floor_of(greatest(block, pieces) - 1, block));
    for (std::int64_t k = low; k <= high; ++k) {
      if (k == 0) continue;
      const needed n = needed_of(k, block, pieces);
      if (n.begin < n.end) send(-k, n.begin, n.end - n.begin);
    }
  }

 private:
  struct needed {
    std::int64_t begin = 0, end = 0;
  };
  /// Of the block that lies k blocks behind the own one.
  constexpr needed needed_of(std::int64_t k, std::int64_t block, std::int64_t pieces) const {
    const std::int64_t from = k * block, advance = step - block;
    std::int64_t i = 0, last = pieces - 1;  // the pieces that need it
    if (fill != combiner::stack) i = maximum(0, -k), last = minimum(last, last - k);
    if (inside) return part(block - length, length, from, block);
    if (advance != 0) {  // start in (from - length, from + block)
      const std::int64_t below = from - length - first, above = from + block - 1 - first;
      i = maximum(i, advance > 0 ? floor_of(below, advance) + 1 : -floor_of(above, -advance));
      last = minimum(last, advance > 0 ? floor_of(above, advance) : -floor_of(below, -advance) - 1);
    }
    if (i > last) return {};
    const std::int64_t a = first + i * advance, b = first + last * advance;
    return part(minimum(a, b), maximum(a, b) + length, from, block);
  }
  /// What [begin, end) has of the block that starts at `from`, counted from there.
  static constexpr needed part(std::int64_t begin, std::int64_t end, std::int64_t from,
                               std::int64_t block) {
    return {maximum(begin - from, 0), minimum(end - from, block)};
  }
  static constexpr std::int64_t floor_of(std::int64_t a, std::int64_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
  }
  static constexpr std::int64_t minimum(std::int64_t a, std::int64_t b) { return b < a ? b : a; }
  static constexpr std::int64_t maximum(std::int64_t a, std::int64_t b) { return a < b ? b : a; }
};

inline constexpr int max_halo_operands = 2;

struct op_def;

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
  bool possible = true;  ///< false: not into so many pieces
  /// Given: are dimensions larger than they were? Then there may be windows that did not fit, of
  /// which nothing is kept or which add nothing.
  bool grown = false;
  /// Of a function `stretch`: may one end, the operand `alone` (-1: the result), and all others
  /// grow each by themselves?
  bool apart = false;
  int alone = -1;
  /// Of a function `stretch`: the op that goes on as far, with the attributes that are left here
  /// and zero (a scalar) behind its operands; null: the op itself.
  const op_def* becomes = nullptr;
  bool identity = false;  ///< is the piece of operand 0 the result, with these attributes?
  /// Given to a function `narrow`: the positions of the last operand that the op takes.
  std::int64_t begin = 0, count = 0;

  constexpr std::int64_t operand_extent(int k) const {
    return operands[static_cast<std::size_t>(k)].shape[operand_dims[k]];
  }
};

}  // namespace partita
