/// The inputs of a law: the op of the source, and the shards of its operands.
#pragma once

#include <cstdint>

#include <partita/ir/mesh.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/prove/parts.hpp>
#include <partita/prove/pending.hpp>

namespace partita::prove_detail {

/// True if an op has a tile map. For other ops, equal operands give equal results, and nothing else
/// is known.
constexpr bool has_laws(const op_def& d) {
  return d.role != op_role::compute || d.elementwise || d.identity || d.collective ||
         d.tile_map != &no_factors;
}

/// True if an operand only determines the place of others. (Combining with the identity changes
/// nothing, in any place.)
constexpr bool says_where(const site& at, int operand) {
  return at.def().id == def<op::scatter>.id && operand == at.operand_count() - 2;
}

/// Buffers of laws, reused for each op.
struct law_room {
  struct operand_dims {
    unsigned in_factor = 0;  ///< dimensions that have a factor, as bits
    bool empty = false;      ///< true if it has no elements
  };

  vec<piece> pieces;     ///< by operand and dimension
  vec<operand_dims> of;  ///< by operand
  vec<piece> of_factor;
  vec<piece> found;  ///< see contraction_law
  vec<std::int64_t> used;
  vec<int> in_factor, later;
  vec<std::int64_t> attrs;
  vec<tensor_type> types;
};

/// An op of the source, and the local operands of the same op.
class law_operands {
 public:
  /// `whole`: the op's views of the terms of its operands; `parts`: the local op's operands.
  constexpr law_operands(const meanings& all, law_room& room, int of, const factor_table& map,
                         const site& local, span<const operand_term> given)
      : all_(all),
        of_(all.terms[of]),
        source_(of_.at),
        map_(map),
        factors_(map.factors_of(of_.factors)),
        count_(map.ops[of_.factors].count),
        composed_(map.ops[of_.factors].composed),
        local_(local),
        given_(given),
        pieces_(room.pieces),
        operands_(room.of),
        of_factor_(room.of_factor),
        attrs_(room.attrs) {}

  text reason;   ///< reason of a failure
  int near = 2;  ///< progress before the failure: operands, loops, attributes

  /// A dimension of an operand or the result that holds the rows of one device instead of the
  /// source op's dimension.
  struct cut_rows {
    const piece* rows = nullptr;
    int dim = no_dim;
    int operand = -1;  ///< the operand that has them, if any
    bool result = false;
  };
  span<const cut_rows> cuts;

  /// If pending, the first operand is present on one device and the identity on others. Loops that
  /// see it more than once may then be split along these axes, and no others.
  pending input;

  /// Records the reason of a failure.
  template <class... Parts>
  constexpr bool no(const Parts&... parts) {
    reason = concat(parts...);
    return false;
  }

 protected:
  const meanings& all_;
  const term& of_;
  const site& source_;
  const factor_table& map_;
  const factor* factors_;
  int count_;
  bool composed_;
  const site& local_;
  span<const operand_term> given_;  ///< the local op's operands
  vec<piece>& pieces_;              ///< see law_room
  vec<law_room::operand_dims>& operands_;
  vec<piece>& of_factor_;
  vec<std::int64_t>& attrs_;
  std::uint64_t taps_counted_ = 0;  ///< by factor, see counts_taps

  constexpr const factor& at(int f) const { return factors_[f]; }
  constexpr int dim_of(int f, int end) const { return map_.dim_of(factors_[f], end); }
  constexpr const tensor_type& operand_type(int i) const { return source_.operand_type(i); }
  constexpr const tensor_type& result_type(int r) const { return source_.result_type(r); }
  constexpr std::int64_t local_extent(int i, int d) const {
    return local_.operand_type(i).shape.extents[d];
  }

  /// The number of positions of a dimension of an operand or a result (end -1 - r) that belong to
  /// no factor: the minor part of a composed dimension.
  constexpr std::int64_t unfactored(int d, int end) const {
    if (!composed_) return 1;
    std::int64_t n = 1;
    for (int g = 0; g < count_; ++g)
      if (dim_of(g, end) == d) {
        if (at(g).halo) return 1;  // its extent is that of the result
        n *= at(g).size;
      }
    const shape& s = end >= 0 ? operand_type(end).shape : result_type(-1 - end).shape;
    return n == 0 || s.extents[d] % n != 0 ? 1 : s.extents[d] / n;
  }
  /// The number of positions of a dimension in its parts that are more minor than factor f.
  constexpr std::int64_t weight(int f, int end) const {
    if (!composed_) return 1;
    std::int64_t n = unfactored(dim_of(f, end), end);
    for (int g = f + 1; g < count_; ++g)
      if (dim_of(g, end) == dim_of(f, end)) n *= at(g).size;
    return n;
  }
  constexpr bool is_major(int f, int end) const {
    for (int g = 0; composed_ && g < f; ++g)
      if (dim_of(g, end) == dim_of(f, end)) return false;
    return true;
  }
  /// The part of a composed dimension's shard that belongs to one factor.
  constexpr bool restricted(const piece& of, int f, int end, piece& to) const {
    to = of;
    if (of.free) return true;
    return part_of(of, weight(f, end), at(f).size, is_major(f, end), to);
  }
  /// Extracts from a shard `size` positions in steps of `unit`, if their distances equal those in
  /// the global dimension and the rest is separate: the more major part before them, the more minor
  /// part after.
  static constexpr bool part_of(const piece& of, std::int64_t unit, std::int64_t size, bool major,
                                piece& to) {
    to = of;
    to.count = 0;
    to.start = of.start / unit;
    if (!major) to.start %= size;
    if (of.start < 0) return false;
    enum { above, inside, below } part = above;  // place of the current elements
    const auto goes_on = [&](auto next) {
      const bool descends = part <= next;
      part = next;
      return descends;
    };
    for (int i = 0; i < of.count; ++i) {
      digit d = of.digits[i];
      const bool here = d.owner >= 0;
      if (d.stride <= 0) return false;
      const std::int64_t end = d.stride * d.extent;
      if (here && !major && end > unit * size && !goes_on(above)) return false;
      if (!major && d.stride >= unit * size) continue;
      if (here && end > unit && !goes_on(inside)) return false;
      if (here && d.stride < unit && !goes_on(below)) return false;
      if (d.stride < unit) {  // its minor part belongs to another factor
        if (end <= unit) continue;
        if (!here || unit % d.stride != 0 || d.extent % (unit / d.stride) != 0) return false;
        d.extent /= unit / d.stride;
        d.stride = unit;
      }
      if (d.stride % unit != 0) return false;
      if (!major && end > unit * size) {
        if (!here || (unit * size) % d.stride != 0) return false;
        const std::int64_t kept = unit * size / d.stride;
        if (d.extent % kept != 0) return false;
        d.extent = kept;
      }
      to.add(d.owner, d.extent, d.stride / unit);
    }
    return to.good();
  }
  /// True if a dimension consists of this factor alone.
  constexpr bool is_alone(int f, int end) const {
    for (int g = 0; composed_ && g < count_; ++g)
      if (g != f && dim_of(g, end) == dim_of(f, end)) return false;
    return unfactored(dim_of(f, end), end) == 1;
  }
};

}  // namespace partita::prove_detail
