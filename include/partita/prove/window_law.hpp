/// The laws of windows: overlapping shards of operands, and padding.
#pragma once

#include <partita/ir/halo.hpp>
#include <partita/prove/law_operands.hpp>

namespace partita::prove_detail {

/// The law of loops over positions that see neighbours.
///
/// Law       halo_context: the range of the operands that each shard of the result needs
class window_law : public law_operands {
 public:
  using law_operands::law_operands;

 protected:
  /// The number of a shard, from coordinates along axes, major to minor.
  struct coordinates {
    int count = 0;
    digit axes[piece::most] = {};
    std::int64_t pieces = 1, step = 0;
  };
  /// See halo_context.
  struct growth {
    bool possible, apart;
    int alone;
  };
  /// Finds the shard of the results if those of the operands overlap.
  constexpr bool halo_piece(int f, piece& found) {
    const int to = dim_of(f, -1);
    found = piece();
    coordinates along;
    for (int k = 0; k < source_.operand_count(); ++k) {
      const int d = dim_of(f, k);
      if (d == no_dim) continue;
      if (k >= max_halo_operands) return no("operand ", k, " is sharded");
      const piece& mine = pieces_[k * max_rank + d];
      if (!mine.free && along.count == 0 && !find_coordinates(mine, along))
        return no("dimension ", d, " of operand ", k, " is not a sequence of shards");
    }
    // Either as in the source, or padded: then all extents have grown by one ratio.
    const std::int64_t extent = loop_extent(f);
    const vec<std::int64_t> kept = attrs_;
    if (cut_piece(f, along, extent, found)) return true;
    const std::int64_t grown = to != no_dim ? local_.result_type(0).shape.extents[to] * along.pieces
                                            : grown_window(f, along.pieces);
    attrs_ = kept;
    if (grown > extent && cut_piece(f, along, grown, found)) return true;
    // Or each has grown separately.
    const int d = to == no_dim && source_.operand_count() > 1 ? dim_of(f, 1) : no_dim;
    if (to == no_dim && d == no_dim) return false;
    attrs_ = kept;
    const std::int64_t each = to == no_dim ? local_extent(1, d)
                              : growth_of(f).alone == 1 && along.count > 0
                                  ? along.step
                                  : local_.result_type(0).shape.extents[to];
    const std::int64_t all = saturating_multiply(each, along.pieces);
    if (!cut_piece(f, along, all, found, true)) return false;
    if (to == no_dim && all == operand_type(1).shape.extents[d] && f < 64)
      taps_counted_ |= std::uint64_t{1} << f;
    return true;
  }
  /// True if the positions of a reduced loop are those of the sharded tensor, and their number is
  /// at most that in the source.
  constexpr bool counts_taps(int f) const { return f < 64 && (taps_counted_ >> f & 1) != 0; }
  constexpr std::int64_t loop_extent(int f) const {
    const int to = dim_of(f, -1);
    return to == no_dim ? at(f).size : result_type(0).shape.extents[to];
  }
  /// The number of positions of a reduced loop whose tensor has grown, or 0.
  constexpr std::int64_t grown_window(int f, std::int64_t pieces) const {
    const int d = source_.operand_count() < 2 ? no_dim : dim_of(f, 1);
    if (d == no_dim) return 0;
    const std::int64_t size = operand_type(1).shape.extents[d];
    const std::int64_t all =
        saturating_multiply(saturating_multiply(local_extent(1, d), pieces), at(f).size);
    return size == 0 || all % size != 0 ? 0 : all / size;
  }
  /// The same for a loop with `grown` positions; `apart`: the other extents have grown separately.
  constexpr bool cut_piece(int f, const coordinates& along, std::int64_t grown, piece& found,
                           bool apart = false) {
    const int to = dim_of(f, -1);
    found = piece();
    vec<tensor_type> types;
    for (int k = 0; k < source_.operand_count(); ++k) types.push_back(operand_type(k));
    tensor_type result = result_type(0);
    halo_context c{types, result, {no_dim, no_dim}, to, along.pieces, attrs_};
    for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k)
      c.operand_dims[k] = dim_of(f, k);
    if ((apart || grown != loop_extent(f)) && !stretched(f, c, types, result, along, grown, apart))
      return false;
    if (along.count == 0) {
      for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k) {
        const int d = c.operand_dims[k];
        if (d == no_dim) continue;
        if (const piece& mine = pieces_[k * max_rank + d];
            mine.free ? local_extent(k, d) != c.operand_extent(k)
                      : !mine.whole(c.operand_extent(k)))
          return no("dimension ", d, " of operand ", k, " must be unsharded");
      }
      if (to != no_dim && local_.result_type(0).shape.extents[to] != grown)
        return no("the result has a different extent");
      found.add(0, grown, 1);
      return true;
    }
    source_.def().halo(c);
    if (!c.possible) return no("it cannot be split into ", along.pieces, " shards");
    for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k)
      if (c.operand_dims[k] != no_dim && !holds(c, k, along)) return false;
    if (to == no_dim) {  // each shard of the reduced tensor once
      if (grown % along.pieces != 0) return no("it cannot be split into ", along.pieces, " shards");
      found.add(0, grown / along.pieces, 1);
      add_axes(found, along, grown / along.pieces);
      return true;
    }
    if (c.made != 0) return no("its shard of the result is a part of what it computes");
    if (grown % along.pieces != 0 ||
        local_.result_type(0).shape.extents[to] != grown / along.pieces)
      return no("the result has a different extent");
    found.add(0, grown / along.pieces, 1);
    add_axes(found, along, grown / along.pieces);
    return true;
  }
  /// How the extents of the op grow with more positions, according to the source.
  constexpr growth growth_of(int f) const {
    vec<tensor_type> types;
    for (int k = 0; k < source_.operand_count(); ++k) types.push_back(operand_type(k));
    vec<std::int64_t> attrs = attrs_;
    halo_context c{types, result_type(0), {no_dim, no_dim}, dim_of(f, -1), 1, attrs};
    for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k)
      c.operand_dims[k] = dim_of(f, k);
    source_.def().stretch(c);
    return {c.possible, c.apart, c.alone};
  }
  /// Builds the op with more positions. Operands hold the values that it skips.
  constexpr bool stretched(int f, halo_context& c, vec<tensor_type>& types, tensor_type& result,
                           const coordinates& along, std::int64_t grown, bool apart) {
    const std::int64_t extent = loop_extent(f);
    const std::int64_t pieces = c.pieces;
    const growth before = growth_of(f);
    if (!before.possible || (apart && !before.apart))
      return no("it does not extend to more positions");
    const bool by_itself = apart && before.alone == 1 && c.result_dim != no_dim;
    if (by_itself && !grow_apart(c, types, along, grown)) return false;
    for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k) {
      if (c.operand_dims[k] == no_dim || by_itself) continue;
      std::int64_t& size = types[k].shape.extents[c.operand_dims[k]];
      if (apart) {
        const bool taps = c.result_dim == no_dim && k == 1;
        if (!taps && pieces != 1) continue;
        const std::int64_t here = taps ? grown : local_extent(k, c.operand_dims[k]);
        if (here < size) return no("operand ", k, " must be unsharded");
        size = here;
        continue;
      }
      if (extent == 0 || size * grown % extent != 0)
        return no("extents do not grow by the same factor");
      size = size / greatest_common_divisor(size, extent) * grown /
             (extent / greatest_common_divisor(size, extent));
    }
    if (c.result_dim != no_dim) result.shape.extents[c.result_dim] = grown;
    c.pieces = 1;
    c.grown = true;
    source_.def().stretch(c);
    if (!c.possible || (apart && !c.apart) || c.becomes != nullptr)
      return no("it does not extend to more positions");
    for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k) {
      if (c.operand_dims[k] == no_dim || c.ranges[k].fill == combiner::stack) continue;
      const piece& mine = pieces_[k * max_rank + c.operand_dims[k]];
      if (is_no_larger(k, c.operand_dims[k], c.operand_extent(k))) continue;
      if (!stands_beyond(mine.beyond, c.ranges[k], k))
        return no("the padding of operand ", k, " has other values");
    }
    c.pieces = pieces;
    return true;
  }
  /// True if the first operand and the result have grown alike, and the second one separately.
  constexpr bool grow_apart(const halo_context& c, vec<tensor_type>& types,
                            const coordinates& along, std::int64_t grown) {
    for (int k = 0; k < 2; ++k) {
      const int d = c.operand_dims[k];
      coordinates mine;
      if (d == no_dim || !find_coordinates(pieces_[k * max_rank + d], mine) ||
          mine.pieces != along.pieces)
        return no("operand ", k, " is not sharded like the other one");
      const std::int64_t all = k == 0            ? grown
                               : mine.count == 0 ? local_extent(k, d)
                                                 : saturating_multiply(mine.step, mine.pieces);
      std::int64_t& size = types[k].shape.extents[d];
      if (all < size) return no("operand ", k, " must be unsharded");
      size = all;
    }
    return true;
  }
  /// True if an operand with this number of visible elements has no padding. (A repeated value
  /// repeats in its padding, too.)
  constexpr bool is_no_larger(int k, int d, std::int64_t seen) const {
    const piece& mine = pieces_[k * max_rank + d];
    const std::int64_t extent = operand_type(k).shape.extents[d];
    return mine.free ? seen == extent : mine.lies_inside(extent);
  }
  static constexpr std::int64_t magnitude(std::int64_t n) { return n < 0 ? -n : n; }
  static constexpr bool find_coordinates(const piece& of, coordinates& c) {
    for (int i = 0; i < of.count; ++i)
      if (of.digits[i].owner < 0) {
        int at = c.count++;
        for (; at > 0 && magnitude(c.axes[at - 1].stride) < magnitude(of.digits[i].stride); --at)
          c.axes[at] = c.axes[at - 1];
        c.axes[at] = of.digits[i];
      }
    if (c.count == 0) return true;
    c.step = c.axes[c.count - 1].stride;
    for (int i = c.count; i-- > 0;) {
      if (c.axes[i].stride != c.step * c.pieces) return false;
      c.pieces *= c.axes[i].extent;
    }
    return true;
  }
  static constexpr void add_axes(piece& to, const coordinates& c, std::int64_t step) {
    std::int64_t of = step * c.pieces;
    vec<digit> list;
    for (int i = 0; i < c.count; ++i) {
      of /= c.axes[i].extent;
      list.push_back({c.axes[i].owner, 0, c.axes[i].extent, of});
    }
    for (std::size_t i = 0; i < list.size(); ++i)
      to.add(list[i].owner, list[i].extent, list[i].stride);
  }
  /// True if an operand holds the shards that an iteration needs.
  constexpr bool holds(const halo_context& c, int k, const coordinates& along) {
    const halo_range& r = c.ranges[k];
    if (r.inside) return no("operand ", k, " is shifted inside of its tensor");
    piece want;
    want.start = r.first;
    want.add(0, r.length, 1);
    add_axes(want, along, r.step);
    const piece& given = pieces_[k * max_rank + c.operand_dims[k]];
    if (given.free ? local_extent(k, c.operand_dims[k]) != r.length : !given.same_digits(want))
      return no("dimension ", c.operand_dims[k], " of operand ", k,
                " does not hold the shards and neighbours that are needed");
    const std::int64_t extent = c.operand_extent(k), last = r.first + (along.pieces - 1) * r.step;
    const bool below = r.first < 0 || last < 0;
    const bool above = r.first + r.length > extent || last + r.length > extent;
    if ((below || above) && !r.any && !stands_beyond(given.beyond, r, k))
      return no("the padding at the ends of operand ", k, " has other values");
    return true;
  }
  constexpr bool stands_beyond(std::int64_t beyond, const halo_range& r, int k) const {
    if (r.fill_operand >= 0)
      return beyond >= outside::first_value &&
             all_.scalars[static_cast<int>(beyond - outside::first_value)] ==
                 all_.scalar(given_[r.fill_operand]);
    if (r.fill == combiner::stack) return beyond == outside::wraps;
    return all_.is_identity(beyond, r.fill, operand_type(k).element);
  }
};

}  // namespace partita::prove_detail
