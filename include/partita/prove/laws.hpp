/// The laws of ops: their tile maps determine which shards of results an op computes from which
/// shards of operands.
#pragma once

#include <cstdint>

#include <partita/prove/window_law.hpp>

namespace partita::prove_detail {

/// One op of the source, applied to shards of its operands.
///
/// Law       each entry of a tile map is a theorem about its op, see ir/tile_map.hpp
class op_law : public window_law {
 public:
  using window_law::window_law;

  /// Finds the views of the results and adds pending sums.
  constexpr bool apply(vec<view>& results, pending& sums) {
    if (!find_all_pieces()) return false;
    std::uint32_t split = 0;
    for (int f = 0; f < count_; ++f)
      if (needs_others(f) ? !is_complete(f)
          : at(f).located ? !starts_once(f, split)
                          : !check(f, sums))
        return false;
    if (split != input.axes || !sums.add(split, input.combine))
      return no("an operand that is viewed several times does not hold the shard of one device");
    if (!rest_is_whole()) return false;
    ++near;
    if (!find_results(results)) return false;
    for (const view& v : results)
      for (int i = 0; i < v.count; ++i)
        if (v.digits[i].owner < 0 && sums.contains(axis_of(v.digits[i])))
          return no("it holds different shards where it is to be reduced");
    return true;
  }

 private:
  constexpr bool find_all_pieces() {
    const int count = source_.operand_count();
    const auto room = static_cast<std::size_t>(count) * max_rank;
    if (pieces_.size() < room) pieces_.resize(room);
    operands_.assign(static_cast<std::size_t>(count), {});
    for (int i = 0; i < count; ++i) {
      const operand_term& whole = all_.terms.operand(of_, i);
      const operand_term& alias = all_.terms[given_[i].term].alias;
      operands_[i].empty = operand_type(i).shape.has_no_elements();
      if (operands_[i].empty) {  // none exist
        for (int d = 0; d < operand_type(i).shape.rank; ++d) {
          pieces_[i * max_rank + d] = piece();
          pieces_[i * max_rank + d].free = true;
        }
        continue;
      }
      if (!find_pieces(all_, whole, operand_type(i).shape, given_[i],
                       pieces_.data() + i * max_rank))
        return no("operand ", i,
                  alias.term >= 0 ? " is reshaped" : " is not a shard of its value in the source");
    }
    ++near;
    attrs_.clear();
    for (auto a : source_.attrs()) attrs_.push_back(a);
    of_factor_.clear();
    taps_counted_ = 0;
    for (int f = 0; f < count_; ++f) {
      piece each;
      if (!piece_of(f, each)) return false;
      of_factor_.push_back(each);
    }
    ++near;
    return true;
  }
  constexpr bool find_results(vec<view>& results) {
    if (!same_elements(span<const std::int64_t>(attrs_), local_.attrs()))
      return no("the attributes differ from those of its shard");
    results.clear();
    results.reserve(static_cast<std::size_t>(source_.result_count()));
    for (int r = 0; r < source_.result_count(); ++r)
      if (!add_result(r, results)) return false;
    return true;
  }
  /// The shard that all operands with a factor hold. They must agree, except for repeated values,
  /// whose extents must match the others.
  constexpr bool piece_of(int f, piece& found) {
    found.free = true;
    std::int64_t extent = -1;
    for (int i = 0; i < source_.operand_count(); ++i) {
      const int d = dim_of(f, i);
      if (d == no_dim) continue;
      operands_[i].in_factor |= 1u << d;
      if (at(f).halo) continue;
      const piece& given = pieces_[i * max_rank + d];
      piece part;
      const bool alone = is_alone(f, i);
      if (!alone && !restricted(given, f, i, part))
        return no("the shard of dimension ", d, " of operand ", i, " splits its factors");
      const piece& mine = alone ? given : part;
      if (alone && !operands_[i].empty) {
        if (extent >= 0 && extent != local_extent(i, d))
          return no("dimension ", d, " of operand ", i, " has a different extent from the others");
        extent = local_extent(i, d);
      }
      if (mine.free) continue;
      if (alone && mine.local_extent() != local_extent(i, d) && local_extent(i, d) > 0)
        return no("dimension ", d, " of operand ", i, " repeats");
      if (found.free) {
        found = mine;
      } else if (!found.same_positions(mine)) {
        return no("dimension ", d, " of operand ", i,
                  " does not hold the positions that the other "
                  "operands hold");
      } else if (found.beyond != mine.beyond) {
        found.beyond = outside::unknown;
      }
    }
    if (at(f).halo) return halo_piece(f, found);
    if (!found.free && extent >= 0 && extent != found.local_extent())
      return no("an operand has a different extent from the shard that the others hold");
    return has_operand(f) || made_whole(f, found);
  }

  constexpr bool has_operand(int f) const {
    for (int i = 0; i < source_.operand_count(); ++i)
      if (dim_of(f, i) != no_dim) return true;
    return false;
  }
  /// A factor whose extent no operand determines has the same extent as in the source.
  constexpr bool made_whole(int f, piece& found) {
    if (source_.operand_count() == 0) {  // counts on
      found = piece();
      found.add(0, local_.result_type(0).shape.extents[dim_of(f, -1)], 1);
      return true;
    }
    for (int r = 0; r < source_.result_count(); ++r) {
      const int d = dim_of(f, -1 - r);
      if (d != no_dim && result_type(r).shape.extents[d] != local_.result_type(r).shape.extents[d])
        return no("the result has a different extent");
    }
    found = piece();
    found.add(0, at(f).size, 1);
    return true;
  }
  constexpr bool in_some_result(int f) const {
    for (int r = 0; r < source_.result_count(); ++r)
      if (dim_of(f, -1 - r) != no_dim) return true;
    return false;
  }
  /// True if a repeated value has as many elements as in the source, or more. (Excess elements are
  /// padding. A running result on equal elements is not constant.)
  constexpr bool repeats_all(int f) {
    const int d = source_.operand_count() > 0 ? dim_of(f, 0) : no_dim;
    if (d == no_dim || at(f).carry == combiner::stack) return false;
    const std::int64_t here = local_extent(0, d);
    if (here < at(f).size || (at(f).backwards && here > at(f).size)) return false;
    of_factor_[f] = piece();
    of_factor_[f].add(0, here, 1);
    return true;
  }
  /// True if the order of combination is irrelevant. (For extremes, a position decides between
  /// equal values.)
  constexpr bool commutes() const {
    if (source_.def().id != def<op::fold>.id) return true;
    return op::fold::parts(source_.attrs(), static_cast<std::size_t>(source_.operand_count()))
        .commutes;
  }
  constexpr bool needs_others(int f) const { return at(f).again || at(f).carry != combiner::stack; }
  /// True if such a loop is complete here. (Padding after the end does not change a running result
  /// before it.)
  constexpr bool is_complete(int f) {
    const piece& mine = of_factor_[f];
    const std::int64_t size = at(f).size;
    if (mine.free && !repeats_all(f)) return free_is_whole(f);
    const std::int64_t end = mine.covered();
    const bool carries = at(f).carry != combiner::stack;
    if (mine.whole(size)) return true;
    if ((carries || !commutes()) && !mine.in_order())
      return no("values that are combined in order are in a different order");
    const bool ends = end == size ||
                      (end > size && carries && (!at(f).backwards || all_identity(f, at(f).carry)));
    bool cut = false;
    for (int i = 0; i < mine.count; ++i) cut = cut || mine.digits[i].owner < 0;
    return (ends && !cut) || no("an operand must be unsharded");
  }
  /// True if a loop that sees the first operand more than once is valid.
  constexpr bool starts_once(int f, std::uint32_t& split) {
    pending of_loop;
    if (!check(f, of_loop)) return false;
    split |= of_loop.axes;
    return true;
  }
  /// True if the loop over a factor is valid. Adds pending sums for reduced loops.
  constexpr bool check(int f, pending& sums) {
    const piece& mine = of_factor_[f];
    const std::int64_t size = at(f).size;
    if (at(f).offset && !mine.free && !mine.whole(size)) return no("it depends on the position");
    if (in_some_result(f)) {
      for (int r = 0; r < source_.result_count(); ++r)
        if (dim_of(f, -1 - r) == no_dim && !mine.free && !mine.whole(size))
          return no("a result needs all shards of an operand");
      return true;
    }
    if (mine.free) return free_is_whole(f);
    if (at(f).combine == combiner::stack)
      return mine.whole(size) || no("an operand must be unsharded");
    const std::int64_t end = mine.covered();
    if (end < size) return no("the shards do not cover the reduced dimension");
    if (end > size && !counts_taps(f) && !all_identity(f)) return no("padding is reduced, too");
    std::uint32_t axes = 0;
    for (int i = 0; i < mine.count; ++i)
      if (mine.digits[i].owner < 0) axes |= 1u << axis_of(mine.digits[i]);
    return sums.add(axes, at(f).combine) || no("it reduces a value that is already pending");
  }
  /// True if the padding of all combined operands is the identity of the reduction.
  constexpr bool all_identity(int f) const { return all_identity(f, at(f).combine); }
  constexpr bool all_identity(int f, combiner combine) const {
    if (!source_.def().reduces_identity) return false;
    for (int i = 0; i < source_.operand_count(); ++i) {
      const int d = dim_of(f, i);
      if (d == no_dim || operand_type(i).shape.has_no_elements() || says_where(source_, i))
        continue;
      if (!is_alone(f, i) ||
          !all_.is_identity(pieces_[i * max_rank + d].beyond, combine, operand_type(i).element))
        return false;
    }
    return true;
  }
  /// Checks a reduction of a repeated value: as often as in the source. (A dimension of several
  /// factors counts only if no dimension has this factor alone.)
  constexpr bool free_is_whole(int f) {
    bool alone = false;
    for (int i = 0; i < source_.operand_count(); ++i)
      alone = alone || (dim_of(f, i) != no_dim && !operands_[i].empty && is_alone(f, i));
    for (int i = 0; i < source_.operand_count(); ++i) {
      const int d = dim_of(f, i);
      if (d == no_dim || operands_[i].empty || (alone && !is_alone(f, i))) continue;
      const std::int64_t here = local_extent(i, d), all = operand_type(i).shape.extents[d];
      if (at(f).size == 1 && all > 1) continue;  // a part of a dimension that does not count
      if (here != all)
        return no("dimension ", d, " of operand ", i, " repeats a different number of times");
    }
    return true;
  }
  /// The sharded rows of a dimension of an operand, or of the result (-1), or null.
  constexpr const cut_rows* cut_of(int operand, int d) const {
    for (const cut_rows& each : cuts)
      if (each.dim == d && (operand < 0 ? each.result : each.operand == operand)) return &each;
    return nullptr;
  }
  /// Checks that dimensions without a factor are unsharded.
  constexpr bool rest_is_whole() {
    for (int i = 0; i < source_.operand_count(); ++i) {
      const shape& s = operand_type(i).shape;
      if (operands_[i].empty) continue;
      for (int d = 0; d < s.rank; ++d) {
        if (const cut_rows* cut = cut_of(i, d); cut != nullptr) {
          if (const piece& mine = pieces_[i * max_rank + d];
              !mine.free && !mine.same_digits(*cut->rows))
            return no("operand ", i, " does not hold the rows that the index counts from");
          continue;
        }
        if ((operands_[i].in_factor >> d & 1u) != 0) {
          piece minor;
          if (const std::int64_t n = unfactored(d, i);
              n > 1 && !pieces_[i * max_rank + d].free &&
              (!part_of(pieces_[i * max_rank + d], 1, n, false, minor) || !minor.whole(n)))
            return no("a factor of dimension ", d, " of operand ", i, " must be unsharded");
          continue;
        }
        const piece& mine = pieces_[i * max_rank + d];
        if (local_extent(i, d) != s.extents[d] || (!mine.free && !mine.whole(s.extents[d])))
          return no("dimension ", d, " of operand ", i, " must be unsharded",
                    has_laws(source_.def()) ? "" : " because the op has no tile map");
      }
    }
    return true;
  }
  /// True if a factor is a complete dimension wherever it is used; then wrapped positions are
  /// allowed.
  constexpr bool goes_around_alone(int f, int r) const {
    bool alone = !at(f).halo && is_alone(f, -1 - r);
    for (int i = 0; i < source_.operand_count(); ++i)
      alone = alone && (dim_of(f, i) == no_dim || is_alone(f, i));
    return alone;
  }
  constexpr bool add_result(int r, vec<view>& results) {
    const shape& s = result_type(r).shape;
    const shape& local = local_.result_type(r).shape;
    if (local.rank != s.rank) return no("the result has a different rank");
    view v(s.rank, s.rank);
    for (int d = 0; d < s.rank; ++d) {
      if (const cut_rows* cut = cut_of(-1, d); cut != nullptr) {
        for (int i = 0; i < cut->rows->count; ++i) {
          const digit& each = cut->rows->digits[i];
          v.add(each.owner < 0 ? each.owner : d, d, each.extent, each.stride);
        }
        continue;
      }
      bool any = false;
      std::int64_t extent = 1;
      for (int f = 0; f < count_; ++f) {
        if (dim_of(f, -1 - r) != d) continue;
        any = true;
        const std::int64_t unit = weight(f, -1 - r);
        piece mine = of_factor_[f];
        if (mine.free && at(f).size == s.extents[d]) {
          extent = -1;
          continue;
        }
        if (mine.free) {  // a part of a dimension: complete, or with another extent
          mine = piece();
          mine.add(0, at(f).size, 1);
        }
        if (!is_major(f, -1 - r) && !mine.lies_inside(at(f).size))
          return no("a factor of dimension ", d, " of the result extends into the next dimension");
        v.start[d] += mine.start * unit;
        if (outside::turns(mine.beyond) && goes_around_alone(f, r))
          v.beyond[d] = outside::unfilled(mine.beyond);
        for (int i = 0; i < mine.count; ++i) {
          const digit& each = mine.digits[i];
          v.add(each.owner < 0 ? each.owner : d, d, each.extent, each.stride * unit);
        }
        extent *= mine.local_extent();
      }
      if (!any) v.add(d, d, s.extents[d], 1);
      if (any && unfactored(d, -1 - r) > 1) {
        v.add(d, d, unfactored(d, -1 - r), 1);
        extent *= unfactored(d, -1 - r);
      }
      const bool same = local.extents[d] == s.extents[d];
      if (!any ? !same : extent >= 0 && extent != local.extents[d] && !(same && s.extents[d] == 0))
        return no("dimension ", d, " of the result has extent ", local.extents[d],
                  ", its shards have ", any ? extent : s.extents[d]);
    }
    if (!v.good()) return no("the result is too complicated");
    v.normalize(s);
    results.push_back(v);
    return true;
  }
};

}  // namespace partita::prove_detail
