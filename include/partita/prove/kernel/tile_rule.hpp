/// The rule of ops with a tile map: applied to blocks of its operands, an op computes blocks of its
/// results.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/kernel/claim.hpp>
#include <partita/prove/kernel/pending_rule.hpp>
#include <partita/support/vec.hpp>

namespace partita::prove_detail {

/// Law       Let the operands of a source op s be known by blocks. Divide each dimension into the
///           factors of its tile map. If all operands have the same blocks of each factor, then the
///           local op with the attributes of s computes the blocks of the results of s that have
///           these blocks of each factor (the theorem that a tile map states). Sharded factors
///           without a dimension in the result leave a pending reduction along their axes.
class tile_rule {
 public:
  std::int64_t grain = 1;  ///< see claim_kernel::set_grain

  constexpr explicit tile_rule(const mesh& m) : mesh_(m) {}

  /// True if local op `o` computes blocks of the results of source op `s`, which has the same
  /// definition and attributes; `operands` are the claims about its operands.
  constexpr bool apply(const program& source, op_id s, const program& local, op_id o,
                       const vec<shard_claim>& operands, vec<shard_claim>& results) {
    const op_node &of = source.op(s), &n = local.op(o);
    if (of.result_count != n.result_count) return false;
    results.clear();
    for (int r = 0; r < n.result_count; ++r) {
      const tensor_type &whole = source.type(of.result + r), &block = local.type(n.result + r);
      if (whole.element != block.element || whole.shape.rank != block.shape.rank) return false;
      results.push_back({});
      results.back().of = of.result + r;
    }
    shard_claim made;
    if (!pending_after(source, s, operands, made)) return false;
    if (!(of.def->elementwise ? elementwise(source, s, operands, results[0])
                              : by_factors(source, s, local, o, operands, results, made)))
      return false;
    for (shard_claim& each : results) {
      each.pending = made.pending;
      each.combine = made.combine;
      if (!is_consistent(each)) return false;
    }
    return true;
  }

 private:
  /// The block of a factor that the operands hold.
  struct block {
    axis_list axes;              ///< which slice it, major to minor
    std::int64_t extent = -1;    ///< of a block
    std::int64_t repeated = -1;  ///< extent in operands that are equal along it
    bool known = false;

    constexpr bool merge(const axis_list& by, std::int64_t n) {
      if (known) return extent == n && same_axes(axes, by);
      axes = by;
      extent = n;
      return known = true;
    }
    constexpr bool merge_repeated(std::int64_t n) {
      if (repeated >= 0 && repeated != n) return false;
      repeated = n;
      return true;
    }
    constexpr bool is_whole(std::int64_t size) const {
      return (known && axes.count == 0 && extent == size) || (!known && repeated == size);
    }
  };

  const mesh& mesh_;
  factor_table map_;
  vec<block> blocks_;
  vec<tensor_type> types_;

  constexpr std::int64_t devices(const axis_list& axes) const {
    std::int64_t n = 1;
    for (const int a : axes) n *= mesh_.size(a);
    return n;
  }
  /// True if no axis slices two dimensions, or slices one and is pending.
  static constexpr bool is_consistent(const shard_claim& c) {
    axis_set seen = c.pending;
    for (const auto& e : c.sharding) {
      if (seen.contains(e.axis)) return false;
      seen.insert(e.axis);
    }
    return true;
  }

  /// Operands have equal shapes, or rank 0.
  static constexpr bool elementwise(const program& source, op_id s,
                                    const vec<shard_claim>& operands, shard_claim& made) {
    bool first = true;
    const int rank = source.type(source.op(s).result).shape.rank;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const shard_claim& x = operands.data()[i];
      if (source.type(x.of).shape.rank == 0) continue;
      if (first) {
        made.sharding = x.sharding;
        made.free = x.free;
        first = false;
      } else if (x.free != made.free || x.sharding.packed != made.sharding.packed) {
        for (int d = 0; d < rank; ++d) {
          if (x.is_free(d)) continue;
          const axis_list axes = axes_along(x.sharding, d);
          if (!made.is_free(d)) {
            if (!same_axes(axes, axes_along(made.sharding, d))) return false;
            continue;
          }
          made.free = static_cast<std::uint8_t>(made.free & ~(1u << d));
          for (const int a : axes) {
            if (made.sharding.dim_of(a) >= 0) return false;
            made.sharding.push_back(a, d);
          }
        }
      }
    }
    return true;
  }

  constexpr bool by_factors(const program& source, op_id s, const program& local, op_id o,
                            const vec<shard_claim>& operands, vec<shard_claim>& results,
                            shard_claim& made) {
    read_map(source, s);
    for (int i = 0; i < static_cast<int>(operands.size()); ++i)
      if (!divide(i, operands[i], local.type(local.operand(o, i)).shape)) return false;
    for (int f = 0; f < map_.ops[0].count; ++f)
      if (!is_valid(f, static_cast<int>(results.size()), made)) return false;
    for (int r = 0; r < static_cast<int>(results.size()); ++r)
      if (!join(r, source.type(results[r].of).shape, local.type(local.op(o).result + r).shape,
                results[r]))
        return false;
    return true;
  }
  constexpr void read_map(const program& source, op_id s) {
    const op_node& n = source.op(s);
    map_.clear();
    types_.clear();
    for (value_id x : source.operands(s)) types_.push_back(source.type(x));
    const auto attrs = source.attrs(s);
    tile_map_context context(types_, source.type(n.result), attrs.data(), n.attr_count, map_,
                             n.result_count);
    n.def->tile_map(context);
    blocks_.clear();
    blocks_.resize(static_cast<std::size_t>(map_.ops[0].count), block{});
  }
  /// Divides the dimensions of an operand's block into blocks of their factors.
  constexpr bool divide(int i, const shard_claim& claim, const shape& here) {
    const shape& whole = types_[i].shape;
    if (here.rank != whole.rank) return false;
    for (int d = 0; d < whole.rank; ++d) {
      const axis_list axes = axes_along(claim.sharding, d);
      int only = -1, count = 0;
      std::int64_t product = 1;
      for (int f = 0; f < map_.ops[0].count; ++f)
        if (map_.operand_dim(map_.at(0, f), i) == d) {
          only = f;
          ++count;
          product *= map_.at(0, f).size;
        }
      if (count == 1 && product == whole[d]) {
        if (!(claim.is_free(d) ? blocks_[only].merge_repeated(here[d])
                               : blocks_[only].merge(axes, here[d])))
          return false;
      } else if (here[d] * devices(axes) != whole[d]) {
        return false;  // padding, or another number of equal elements
      } else if (count == 0) {
        if (axes.count > 0) return false;
      } else if (!divide_composed(i, d, claim.is_free(d), axes)) {
        return false;
      }
    }
    return true;
  }
  /// Axes slice the major factors first; a factor after one that is not sliced into single
  /// positions is not sliced.
  constexpr bool divide_composed(int i, int d, bool is_free, const axis_list& axes) {
    int used = 0;
    bool may_slice = true;
    for (int f = 0; f < map_.ops[0].count; ++f) {
      if (map_.operand_dim(map_.at(0, f), i) != d) continue;
      std::int64_t extent = map_.at(0, f).size;
      axis_list mine;
      if (extent % grain != 0) may_slice = may_slice && extent == 1;
      while (may_slice && used < axes.count && extent % mesh_.size(axes.axes[used]) == 0) {
        extent /= mesh_.size(axes.axes[used]);
        mine.push_back(axes.axes[used++]);
      }
      may_slice = extent == 1;
      if (!(is_free ? blocks_[f].merge_repeated(extent) : blocks_[f].merge(mine, extent)))
        return false;
    }
    return used == axes.count;
  }
  /// True if the op may run on blocks of a factor. Adds the reduction that this leaves pending.
  constexpr bool is_valid(int f, int results, shard_claim& made) {
    const factor& each = map_.at(0, f);
    block& b = blocks_[f];
    if (b.known && b.repeated >= 0 && b.repeated != b.extent) return false;
    bool in_all = true;
    for (int r = 0; r < results; ++r) in_all = in_all && map_.result_dim(each, r) != no_dim;
    if (is_plain_factor(each) && in_all) return true;
    if (b.is_whole(each.size)) return true;
    if (!is_plain_factor(each)) return !b.known && b.repeated < 0;  // see `join`
    if (each.combine == combiner::stack || results != 1 || !b.known) return false;
    if (b.extent * devices(b.axes) != each.size) return false;
    if (b.axes.count > 0 && !made.pending.empty() && made.combine != each.combine) return false;
    for (const int a : b.axes) {
      if (made.pending.contains(a)) return false;
      made.pending.insert(a);
    }
    if (b.axes.count > 0) made.combine = each.combine;
    return true;
  }
  /// Composes the dimensions of a result from blocks of their factors.
  constexpr bool join(int r, const shape& whole, const shape& here, shard_claim& made) {
    for (int d = 0; d < whole.rank; ++d) {
      int count = 0;
      std::int64_t product = 1;
      bool is_free = true;
      for (int f = 0; f < map_.ops[0].count; ++f)
        if (map_.result_dim(map_.at(0, f), r) == d) {
          ++count;
          product *= map_.at(0, f).size;
          is_free = is_free && !blocks_[f].known && is_plain_factor(map_.at(0, f));
        }
      const bool alone = count == 1 && product == whole[d];
      if (alone && is_free) {
        made.free = static_cast<std::uint8_t>(made.free | 1u << d);
        for (int f = 0; f < map_.ops[0].count; ++f)
          if (map_.result_dim(map_.at(0, f), r) == d && blocks_[f].repeated >= 0 &&
              blocks_[f].repeated != here[d])
            return false;
        continue;
      }
      std::int64_t extent = product > 0 ? whole[d] / product : 1;
      bool may_slice = true;
      for (int f = 0; f < map_.ops[0].count; ++f) {
        const factor& each = map_.at(0, f);
        if (map_.result_dim(each, r) != d) continue;
        const block& b = blocks_[f];
        if (!b.known) {  // equal elements, next to others: only all of them
          if (b.repeated >= 0 && b.repeated != each.size) return false;
          extent *= each.size;
          may_slice = may_slice && each.size == 1;
          continue;
        }
        if (!alone && b.extent * devices(b.axes) != each.size) return false;
        if (b.axes.count > 0 && !may_slice) return false;
        for (const int a : b.axes) {
          if (made.sharding.dim_of(a) >= 0) return false;
          made.sharding.push_back(a, d);
        }
        extent *= b.extent;
        may_slice = may_slice && b.extent == 1;
      }
      if (extent != here[d]) return false;
    }
    return true;
  }
};

}  // namespace partita::prove_detail
