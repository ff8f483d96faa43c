/// What a law of an op looks at: the op of the source, and the pieces of its operands.
#pragma once

#include <cstdint>

#include <partita/ir/mesh.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/prove/parts.hpp>
#include <partita/prove/pending.hpp>

namespace partita::prove_detail {

/// What is the same everywhere may be reduced in shares: along these axes, by so many devices.
struct repeat_shares {
  std::uint32_t axes = 0;
  std::int64_t devices = 1;
  std::int64_t needed = 1;  ///< how often less than in the source it is reduced, if a law says so
};

/// Has an op a tile map? Of others it is known only that they make the same of the same operands.
constexpr bool has_laws(const op_def& d) {
  return d.role != op_role::compute || d.elementwise || d.identity || d.collective ||
         d.tile_map != &no_factors;
}

/// Does an operand say only where the others go? (What the identity is combined with stays as it
/// is, wherever that is.)
constexpr bool says_where(const site& at, int operand) {
  return at.def().id == def<op::scatter>.id && operand == at.operand_count() - 2;
}

/// Room for what a law looks at, from op to op.
struct law_room {
  struct operand_dims {
    unsigned in_factor = 0;  ///< those that have a factor, as bits
    bool empty = false;      ///< has it no elements?
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

/// An op of the source, and what the same op is given of its operands.
class law_operands {
 public:
  /// `whole`: how the op sees the terms of its operands; `parts`: what the local op is given.
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

  text reason;   ///< why there is no result
  int near = 2;  ///< how much was found before that: operands, loops, attributes

  /// A dimension of an operand and of the result is not that of the source's op, but the rows of it
  /// that a device has.
  struct cut_rows {
    const piece* rows = nullptr;
    int dim = no_dim;
    int operand = -1;  ///< which one, if one has them
    bool result = false;
  };
  span<const cut_rows> cuts;

  /// By operand, where it is pieces that start anywhere (see moved_piece), or -1: it is given as if
  /// these lay next to each other, in the order of the devices' numbers.
  span<const int> moved;
  /// The results are pieces that start so, along dimensions of theirs.
  vec<moved_piece::move> results_moved;

  /// The first operand is that of one device and the identity on others, as it is pending: then
  /// loops that see it more than once may be split along these axes, and no others.
  pending input;

  /// If set, the loop over a factor whose results are operands again, or whose pieces lack what is
  /// before them, may be cut: the number of the piece, as digits of axes. (One such loop.)
  piece* joined = nullptr;
  int joined_loop = -1;         ///< the factor whose loop is cut so
  bool same_attributes = true;  ///< must they be those of the source's op?

  /// If set, devices that each have a piece of what is the same everywhere, and runs on.
  const device_row* repeated = nullptr;
  bool some_cut = false;  ///< could it be set?

  /// Axes whose devices share what is reduced and the same everywhere; so often less each has it.
  repeat_shares shares;

  /// Says why.
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
  span<const operand_term> given_;  ///< what the local op is given
  vec<piece>& pieces_;              ///< see law_room
  vec<law_room::operand_dims>& operands_;
  vec<piece>& of_factor_;
  vec<std::int64_t>& attrs_;
  std::uint64_t taps_counted_ = 0;  ///< by factor, see counts_taps

  constexpr int whole_view(int i) const { return all_.terms.operand(of_, i).view; }
  constexpr const factor& at(int f) const { return factors_[f]; }
  constexpr int dim_of(int f, int end) const { return map_.dim_of(factors_[f], end); }
  constexpr const tensor_type& operand_type(int i) const { return source_.operand_type(i); }
  constexpr const tensor_type& result_type(int r) const { return source_.result_type(r); }
  constexpr std::int64_t local_extent(int i, int d) const {
    return local_.operand_type(i).shape.extents[d];
  }

  /// The positions of a dimension of an operand or a result (end -1 - r) that stand in no factor:
  /// the most minor part of a composed one.
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
  /// The positions of a dimension that the minor parts of it take, behind factor f.
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
  /// The part of a piece of a composed dimension that belongs to one factor.
  constexpr bool restricted(const piece& of, int f, int end, piece& to) const {
    to = of;
    if (of.free) return true;
    return part_of(of, weight(f, end), at(f).size, is_major(f, end), to);
  }
  /// Of a piece, the positions in steps of `unit`, so many of them: if elements that differ in them
  /// alone stand as far apart as in the whole, what is more major before them, what is minor
  /// behind.
  static constexpr bool part_of(const piece& of, std::int64_t unit, std::int64_t size, bool major,
                                piece& to) {
    to = of;
    to.count = 0;
    to.start = of.start / unit;
    if (!major) to.start %= size;
    if (of.start < 0) return false;
    enum { above, inside, below } part = above;  // where the elements at hand stand
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
  /// Is a dimension made of this factor alone?
  constexpr bool is_alone(int f, int end) const {
    for (int g = 0; composed_ && g < count_; ++g)
      if (g != f && dim_of(g, end) == dim_of(f, end)) return false;
    return unfactored(dim_of(f, end), end) == 1;
  }
};

}  // namespace partita::prove_detail
