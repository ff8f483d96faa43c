/// Halos: loops whose iterations read overlapping slices of their operands.
#pragma once

#include <cstdint>

#include <partita/ir/tile_map.hpp>
#include <partita/support/span.hpp>

namespace partita {

/// The slices of one operand, along the dimension that the factor slices. Iteration i reads
/// `length` elements, starting at first + i * step. A slice may extend out of bounds, and it may
/// differ from block i, which has `block` elements and overlaps no other block.
struct halo_range {
  std::int64_t first = 0, step = 0, length = 0;
  /// The content of the padding: the identity of this combiner (zero for a sum). With `stack`,
  /// slices wrap around, as in a ring.
  combiner fill = combiner::add;
  int fill_operand = -1;  ///< if not -1, the padding holds this operand instead, a scalar
  /// True if slices that would be out of bounds are shifted until they are not.
  bool inside = false;
  bool any = false;  ///< true if nothing depends on the padding

  /// Returns the plain blocks of n elements.
  static constexpr halo_range exact(std::int64_t n, std::int64_t pieces) {
    return {0, n / pieces, n / pieces};
  }
  friend constexpr bool operator==(const halo_range&, const halo_range&) = default;
  /// True if slice i is block i.
  constexpr bool plain(std::int64_t block) const {
    return first == 0 && step == block && length == block;
  }
  /// True if slice i is block pieces - 1 - i.
  constexpr bool mirrored(std::int64_t block, std::int64_t pieces) const {
    return step == -block && length == block && first == (pieces - 1) * block;
  }
  /// Returns the start of slice i, in an operand of n elements.
  constexpr std::int64_t start(std::int64_t i, std::int64_t n) const {
    const std::int64_t at = first + i * step;
    if (!inside) return at;
    return at < 0 ? 0 : at > n - length ? n - length : at;
  }
  /// Returns the minimum start of all slices, relative to the start of block i.
  constexpr std::int64_t least(std::int64_t block, std::int64_t pieces) const {
    if (inside) return block - length;
    return minimum(first, first + (pieces - 1) * (step - block));
  }
  /// Returns the maximum end of all slices, relative to the start of block i.
  constexpr std::int64_t greatest(std::int64_t block, std::int64_t pieces) const {
    if (inside) return length;
    return length + maximum(first, first + (pieces - 1) * (step - block));
  }
  /// Calls send(shift, from, elements) for each other block that slices need: some slice i needs
  /// the elements [from, from + elements) of block i - shift. A negative shift is a later block.
  /// Blocks are visited in order, first to last. Padding is not reported.
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
  /// Returns the elements that slices need of the block k positions after their own.
  constexpr needed needed_of(std::int64_t k, std::int64_t block, std::int64_t pieces) const {
    const std::int64_t from = k * block, advance = step - block;
    std::int64_t i = 0, last = pieces - 1;  // the slices that need it
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
  /// Returns the part of [begin, end) that is in the block starting at `from`, relative to `from`.
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

/// The argument of an op's `halo` function. A loop over a factor with a halo splits its dimensions
/// into `pieces` slices. The function sets which slices of its operands an iteration needs, and
/// adapts the attributes to them.
struct halo_context {
  span<const tensor_type> operands;  ///< with their extents before the split
  const tensor_type& result;
  int operand_dims[max_halo_operands];  ///< the dimension that the factor slices, or no_dim
  int result_dim;                       ///< or no_dim
  std::int64_t pieces;
  vec<std::int64_t>& attrs;

  halo_range ranges[max_halo_operands] = {};  ///< by operand
  /// 0 if an iteration computes its block of the result. Otherwise it computes `made` elements, and
  /// the first of them is where the slice of operand 0 starts, divided by `unit`.
  std::int64_t made = 0, unit = 1;
  bool possible = true;  ///< false if the op cannot be split into this many slices
  /// Set by the caller: true if dimensions were padded. Windows may then exist that did not fit
  /// before; their results are discarded or add nothing.
  bool grown = false;
  /// Set by a `stretch` function: true if one end (the operand `alone`, or the result if it is -1)
  /// may be padded independently of all others.
  bool apart = false;
  int alone = -1;
  /// Set by a `stretch` function: the op that replaces this one, with the attributes left here and
  /// with zero (a scalar) appended to its operands. Null if the op stays the same.
  const op_def* becomes = nullptr;
  bool identity = false;  ///< true if the slice of operand 0 is the result, with these attributes
  /// Set by the caller of a `narrow` function: the positions of the last operand that the op uses.
  std::int64_t begin = 0, count = 0;

  constexpr std::int64_t operand_extent(int k) const {
    return operands[static_cast<std::size_t>(k)].shape[operand_dims[k]];
  }
};

}  // namespace partita
