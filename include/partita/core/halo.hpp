/// The loops over factors with halos. All loops over one such factor slice its dimensions together.
/// An iteration reads a *piece* of an operand: its own block and a halo of neighbouring elements.
#pragma once

#include <cstdint>

#include <partita/core/loops.hpp>
#include <partita/ir/halo.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// One factor of an op, with a halo, cut into pieces.
struct halo_cut {
  int operand_dims[max_halo_operands] = {no_dim, no_dim};  ///< the sliced dimensions, or no_dim
  int result_dim = no_dim;
  std::int64_t pieces = 1;
  halo_range ranges[max_halo_operands] = {};    ///< the elements that each piece needs, by operand
  std::int64_t blocks[max_halo_operands] = {};  ///< elements per piece without halo
  std::int64_t made = 0, unit = 1;              ///< see halo_context
  bool possible = false;
  bool identity = false;            ///< see halo_context
  bool apart = false;               ///< see halo_context
  int alone = -1;                   ///< see halo_context
  const op_def* becomes = nullptr;  ///< see halo_context

  constexpr bool slices(int operand) const {
    return operand < max_halo_operands && operand_dims[operand] != no_dim;
  }
  /// True if an iteration needs only its own block of an operand.
  constexpr bool plain(int operand) const {
    return !slices(operand) || ranges[operand].plain(blocks[operand]);
  }
  /// The offset of piece i of the result, which has `extent` elements, in the output of iteration
  /// i.
  constexpr std::int64_t kept_from(std::int64_t i, std::int64_t extent) const {
    return i * extent - ranges[0].start(i, blocks[0] * pieces) / unit;
  }
  /// True if exchanging the halos of an operand sends less than gathering it. One block sent in
  /// place of one gathered block also counts: it sends as much, but the result stays sharded.
  constexpr bool worthwhile(int operand) const {
    const halo_range& r = ranges[operand];
    const std::int64_t block = blocks[operand];
    if (r.mirrored(block, pieces)) return true;
    std::int64_t all = 0, borders = 0;
    r.for_each_border(block, pieces,
                      [&](std::int64_t, std::int64_t, std::int64_t n) { all += n, ++borders; });
    const std::int64_t gathered = (pieces - 1) * block;
    return all < gathered || (all == gathered && borders <= 1);
  }
};

/// The loops of an op over one factor with a halo.
struct halo_loops {
  int factor = any_factor;
  axis_list axes;
  halo_cut cut;
};

/// Calls an op's halo rule for a factor. `types` are those of its operands along the factor's
/// dimensions; `attrs` is updated in place. The result is not `possible` if the factor slices an
/// operand beyond the first max_halo_operands. `grown`: see halo_context.
constexpr halo_cut ask_for_halo(void (*rule)(halo_context&), const factor_table& map,
                                const factor& f, std::int64_t pieces, span<const tensor_type> types,
                                const tensor_type& result, vec<std::int64_t>& attrs, bool grown) {
  halo_cut cut;
  halo_context c{types, result, {no_dim, no_dim}, map.dim_of(f, -1), pieces, attrs};
  for (int k = 0; k < max_halo_operands && k < static_cast<int>(types.size()); ++k)
    c.operand_dims[k] = map.operand_dim(f, k);
  for (int k = max_halo_operands; k < static_cast<int>(types.size()); ++k)
    if (map.operand_dim(f, k) != no_dim) return cut;
  c.grown = grown;
  rule(c);
  cut.result_dim = c.result_dim;
  cut.pieces = pieces;
  cut.possible = c.possible;
  cut.identity = c.identity;
  cut.apart = c.apart;
  cut.alone = c.alone;
  cut.becomes = c.becomes;
  cut.made = c.made;
  cut.unit = c.unit;
  for (int k = 0; k < max_halo_operands; ++k) {
    cut.operand_dims[k] = c.operand_dims[k];
    cut.ranges[k] = c.ranges[k];
    cut.blocks[k] = cut.slices(k) ? c.operand_extent(k) / pieces : 0;
  }
  return cut;
}
/// Cuts a factor of an op into pieces; `attrs` becomes that of one piece.
constexpr halo_cut cut_halo(const op_def& def, const factor_table& map, const factor& f,
                            std::int64_t pieces, span<const tensor_type> types,
                            const tensor_type& result, vec<std::int64_t>& attrs,
                            bool grown = false) {
  return ask_for_halo(def.halo, map, f, pieces, types, result, attrs, grown);
}
/// Adapts an op to the grown extents of a factor: `attrs` becomes that for the new types, and the
/// fills of `ranges` state the padding that the old extents need. Not `possible` for every op.
constexpr halo_cut stretch_halo(const op_def& def, const factor_table& map, const factor& f,
                                span<const tensor_type> types, const tensor_type& result,
                                vec<std::int64_t>& attrs, bool grown = false) {
  return ask_for_halo(def.stretch, map, f, 1, types, result, attrs, grown);
}

/// The reduced positions of a factor with a halo if they include padding of the last operand that
/// the factor slices. See op_def::narrow.
struct padded_taps {
  int factor = any_factor, operand = 0, dim = 0;
  std::int64_t size = 0;   ///< the true number of positions
  std::int64_t block = 0;  ///< positions per piece; the last pieces may be partly or fully padding
  axis_list axes;          ///< the axes that slice them
};
/// Restricts the attributes of a piece to positions [begin, begin + count). `types` are those of
/// the piece's operands, `result` that of its result.
constexpr void narrow_taps(const op_def& def, const factor_table& map, const factor& f,
                           span<const tensor_type> types, const tensor_type& result,
                           std::int64_t begin, std::int64_t count, vec<std::int64_t>& attrs) {
  halo_context c{types, result, {no_dim, no_dim}, no_dim, 1, attrs};
  for (int k = 0; k < max_halo_operands && k < static_cast<int>(types.size()); ++k)
    c.operand_dims[k] = map.operand_dim(f, k);
  c.begin = begin;
  c.count = count;
  def.narrow(c);
}

}  // namespace partita
