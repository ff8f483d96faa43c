/// Numbers for the borders that ops need of values, so that a border needed by several ops is sent
/// once.
#pragma once

#include <cstdint>

#include <partita/core/halo.hpp>
#include <partita/ir/layout.hpp>
#include <partita/support/place_table.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// Assigns equal numbers to equal borders. A value belongs to one nested program, whose ops run in
/// sequence, so that a border received for one op is available for all later ones.
///
/// Cost: constant per query.
class halo_numbers {
 public:
  constexpr void clear() {
    keys_.clear();
    table_ = {};
  }
  /// The number of numbers assigned.
  constexpr int count() const { return static_cast<int>(keys_.size()); }

  /// The number of a core program's value in a given layout.
  constexpr int whole(value_id v, const layout& lies) {
    return number({kind::whole, v, lies, {}, no_dim, -1});
  }
  /// The number of value `of` after extension for operand k along one dimension. `fill` is the
  /// value used out of bounds, or -1.
  constexpr int extended(int of, const halo_loops& h, int k, value_id fill) {
    return number({kind::extended, of, axes_of(h), h.cut.ranges[k], h.cut.operand_dims[k], fill});
  }
  /// The number of the border that one permute of this extension sends, as in
  /// halo_range::for_each_border.
  constexpr int border(int of, const halo_loops& h, int k, std::int64_t shift, std::int64_t from,
                       std::int64_t elements) {
    const halo_range sent{from, shift, elements, h.cut.ranges[k].fill};
    return number({kind::border, of, axes_of(h), sent, h.cut.operand_dims[k], -1});
  }

 private:
  enum class kind : std::uint8_t { whole, extended, border };
  struct key {
    kind what = kind::whole;
    int of = -1;       ///< a value, or a number
    layout axes;       ///< the layout of the value, or the axes that cut the dimension
    halo_range range;  ///< for a border: start, distance, number of elements
    int dim = no_dim;
    value_id fill = -1;

    friend constexpr bool operator==(const key&, const key&) = default;
    constexpr std::size_t hash() const {
      std::size_t h =
          hash_of(static_cast<std::uint64_t>(of) << 8 | static_cast<std::uint64_t>(what));
      for (const std::int64_t each : {range.first, range.step, range.length, std::int64_t{dim}})
        h = hash_of(h + static_cast<std::uint64_t>(each));
      return h;
    }
  };
  vec<key> keys_;
  place_table table_;

  static constexpr layout axes_of(const halo_loops& h) {
    layout l;
    for (int axis : h.axes) l.push_back(axis, no_dim);
    return l;
  }
  constexpr int number(const key& wanted) {
    const int known = table_.find(wanted.hash(), [&](int i) { return keys_[i] == wanted; });
    if (known >= 0) return known;
    keys_.push_back(wanted);
    table_.insert(count() - 1, [&](int i) { return keys_[i].hash(); });
    return count() - 1;
  }
};

}  // namespace partita::spmd_detail
