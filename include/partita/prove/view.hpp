/// Views: the elements of a tensor that a value holds on every device.
#pragma once

#include <cstdint>

#include <partita/ir/mesh.hpp>
#include <partita/ir/shape.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/place_table.hpp>
#include <partita/support/segmented_vec.hpp>
#include <partita/support/vec.hpp>

namespace partita::prove_detail {

/// A counter that contributes to a position: `extent` steps of `stride` elements along a dimension
/// of the tensor.
///
/// Its owner provides the count: a dimension of the value, whose index consists of its digits,
/// major to minor; or the coordinate of a device along an axis (or of an iteration along a loop).
/// Not default-initialized, because arrays of digits are written before they are read.
struct digit {
  std::int16_t owner;  ///< a dimension of the value, or an axis as returned by on_axis
  std::int16_t dim;    ///< of the tensor, or no_dim: the elements are the same for all counts
  std::int64_t extent, stride;

  friend constexpr bool operator==(const digit&, const digit&) = default;
};
constexpr std::int16_t on_axis(int axis) { return static_cast<std::int16_t>(-1 - axis); }
constexpr int axis_of(const digit& d) { return -1 - d.owner; }
/// The owner of digits that a value is reduced over: the value is the sum (or other combination) of
/// the view's elements for each count. Unlike an axis, it counts each of its digits separately.
inline constexpr int bound_axis = 31;

/// True for an axis, whose coordinate is the count of each of its digits.
constexpr bool counts_all(int owner) { return owner < 0 && owner != on_axis(bound_axis); }

/// The contents of positions outside of the tensor.
///
/// Positions may also wrap around a padded tensor: they are taken modulo a number above the extent,
/// and a filling defines the contents after the end.
struct outside {
  static constexpr std::int64_t unknown = 0;
  static constexpr std::int64_t wraps = 1;  ///< the contents at the position modulo the extent
  static constexpr std::int64_t first_value =
      2;  ///< this and higher: a scalar, by number minus this

  /// Positions farther out are not supported, so that such a modulus fits in 64 bits next to a
  /// filling.
  static constexpr std::int64_t farthest = std::int64_t{1} << 42;
  static constexpr std::int64_t around(std::int64_t modulus, std::int64_t filling) {
    return -(modulus * fillings + (filling < fillings ? filling : unknown));
  }
  static constexpr bool turns(std::int64_t beyond) { return beyond < 0 || beyond == wraps; }
  /// The modulus of positions that wrap around.
  static constexpr std::int64_t modulus(std::int64_t beyond, std::int64_t extent) {
    return beyond < 0 ? -beyond / fillings : extent;
  }
  /// The scalar (as above) after the end, or unknown.
  static constexpr std::int64_t filling(std::int64_t beyond) {
    return beyond < 0 ? -beyond % fillings : beyond == wraps ? unknown : beyond;
  }
  /// The same with unknown contents after the end.
  static constexpr std::int64_t unfilled(std::int64_t beyond) {
    return beyond < 0 ? around(modulus(beyond, 0), unknown) : beyond == wraps ? wraps : unknown;
  }

 private:
  static constexpr std::int64_t fillings = std::int64_t{1} << 20;
};

inline constexpr int max_digits = 32;

/// Element (j...) of a value on device (i...) is the element of a tensor at the positions
///
///     start[D] + sum over the digits of D of stride * (their number in j or i),
///
/// of every dimension D. Digits of extent 1 (and 0) are omitted; a dimension of the value without
/// digits repeats its elements, or has at most one. Digits are sorted by owner, dimensions first.
/// For elements outside of the tensor in several dimensions, each of these determines the contents.
struct view {
  int rank = 0;   ///< of the value
  int dims = 0;   ///< of the tensor
  int count = 0;  ///< number of digits; above max_digits: too complicated, not a claim
  digit digits[max_digits];
  std::int64_t start[max_rank];
  std::int64_t beyond[max_rank];  ///< see outside

  constexpr view() {}
  constexpr view(const view& other) { *this = other; }
  /// (Copies only initialized members: constant evaluation rejects others, and there are many.)
  constexpr view& operator=(const view& other) {
    rank = other.rank;
    dims = other.dims;
    count = other.count;
    const int copied = count <= max_digits ? count : 0;
    for (int i = 0; i < copied; ++i) digits[i] = other.digits[i];
    for (int d = 0; d < dims; ++d) {
      start[d] = other.start[d];
      beyond[d] = other.beyond[d];
    }
    return *this;
  }
  constexpr view(int value_rank, int tensor_rank) : rank(value_rank), dims(tensor_rank) {
    for (int d = 0; d < dims; ++d) start[d] = beyond[d] = 0;
  }
  /// The global tensor, unchanged.
  constexpr explicit view(const shape& s) : view(s.rank, s.rank) {
    for (int d = 0; d < rank; ++d) add(d, d, s.extents[d], 1);
  }
  /// True if it equals view(tensor).
  constexpr bool is_whole(const shape& tensor) const {
    if (rank != tensor.rank || dims != tensor.rank) return false;
    int next = 0;
    for (int d = 0; d < dims; ++d) {
      if (start[d] != 0 || beyond[d] != outside::unknown) return false;
      if (tensor.extents[d] <= 1) continue;
      if (next == count) return false;
      const digit& each = digits[next++];
      if (each.owner != d || each.dim != d || each.extent != tensor.extents[d] || each.stride != 1)
        return false;
    }
    return next == count;
  }
  constexpr bool good() const { return count <= max_digits; }
  constexpr void refuse() { count = max_digits + 1; }

  /// Appends a digit, or extends the last one of the same owner (not of an axis, all of whose
  /// digits have the same count).
  constexpr void add(int owner, int dim, std::int64_t extent, std::int64_t stride) {
    if (extent <= 1 || count > max_digits) return;
    if (stride == 0) dim = no_dim;
    if (dim < 0) stride = 0;
    if (count > 0 && !counts_all(owner)) {
      digit& last = digits[count - 1];
      if (last.owner == owner && last.dim == dim && last.stride == stride * extent) {
        last.extent *= extent;
        last.stride = stride;
        return;
      }
    }
    if (count == max_digits) return refuse();
    digits[count++] = {static_cast<std::int16_t>(owner), static_cast<std::int16_t>(dim), extent,
                       stride};
  }
  constexpr void add(int owner, const digit& d) { add(owner, d.dim, d.extent, d.stride); }
  /// The range of an owner's digits: from `begin`, which is updated, to the result.
  constexpr int find(int owner, int& begin) const {
    begin = 0;
    while (begin < count && digits[begin].owner != owner) ++begin;
    int end = begin;
    while (end < count && digits[end].owner == owner) ++end;
    return end;
  }
  constexpr bool has(int owner) const {
    int begin = 0;
    return find(owner, begin) > begin;
  }
  /// True if it shows several positions along a dimension of the tensor.
  constexpr bool sees_along(int dim) const {
    for (int i = 0; i < count; ++i)
      if (digits[i].dim == dim) return true;
    return false;
  }
  /// The number of elements of the tensor that are reduced to each element.
  constexpr std::int64_t reduced_elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < count; ++i)
      if (digits[i].owner == on_axis(bound_axis) && digits[i].dim >= 0)
        n = saturating_multiply(n, digits[i].extent);
    return n;
  }
  /// True if the value is reduced over positions along a dimension of the tensor.
  constexpr bool is_reduced_along(int dim) const {
    for (int i = 0; i < count; ++i)
      if (digits[i].dim == dim && digits[i].owner == on_axis(bound_axis)) return true;
    return false;
  }
  constexpr void drop(int owner) {
    int begin = 0;
    const int end = find(owner, begin);
    for (int i = end; i < count; ++i) digits[begin + i - end] = digits[i];
    if (good()) count -= end - begin;
  }
  /// True if it differs between devices (or iterations) along an axis.
  constexpr bool depends_on(int axis) const { return has(on_axis(axis)); }
  /// True if a dimension of the value repeats the same elements.
  constexpr bool repeats(int d) const {
    int begin = 0;
    for (const int end = find(d, begin); begin < end; ++begin)
      if (digits[begin].dim >= 0) return false;
    return true;
  }
  /// The minimum and maximum position along a dimension of the tensor.
  constexpr void range(int dim, std::int64_t& least, std::int64_t& greatest) const {
    least = greatest = start[dim];
    for (int i = 0; i < count; ++i) {
      if (digits[i].dim != dim) continue;
      const std::int64_t reach = (digits[i].extent - 1) * digits[i].stride;
      (reach < 0 ? least : greatest) += reach;
    }
  }
  constexpr bool reaches_beyond(int dim, std::int64_t extent) const {
    std::int64_t least = 0, greatest = 0;
    range(dim, least, greatest);
    return least < 0 || greatest >= extent;
  }
  /// Sets the padding of a dimension to `fill`, also for elements that are outside in other
  /// dimensions, too: a different padding of those becomes unknown. Returns true if none did.
  constexpr bool fill_beyond(int dim, std::int64_t fill, const shape& tensor) {
    bool only = true;
    for (int d = 0; d < dims; ++d) {
      const std::int64_t mine = outside::filling(beyond[d]);
      if (d == dim || mine == outside::unknown || mine == fill ||
          !reaches_beyond(d, tensor.extents[d]))
        continue;
      beyond[d] = outside::unfilled(beyond[d]);
      only = false;
    }
    beyond[dim] = fill;
    return only;
  }
  constexpr bool reaches_beyond(const shape& tensor) const {
    std::int64_t least[max_rank], greatest[max_rank];
    for (int d = 0; d < dims; ++d) least[d] = greatest[d] = start[d];
    for (int i = 0; i < count; ++i) {
      const digit& each = digits[i];
      if (each.dim < 0) continue;
      const std::int64_t reach = (each.extent - 1) * each.stride;
      (reach < 0 ? least : greatest)[each.dim] += reach;
    }
    for (int d = 0; d < dims; ++d)
      if (least[d] < 0 || greatest[d] >= tensor.extents[d]) return true;
    return false;
  }
  /// Normalizes the view, so that equal views compare equal: digits of axes in the order of the
  /// axes, and no padding where nothing is outside.
  constexpr void normalize(const shape& tensor) {
    for (int i = 1; i < count; ++i)
      for (int k = i; k > 0 && before(digits[k], digits[k - 1]); --k) {
        const digit kept = digits[k];
        digits[k] = digits[k - 1];
        digits[k - 1] = kept;
      }
    for (int d = 0; d < dims; ++d) {
      if (beyond[d] == outside::unknown) continue;
      const std::int64_t n = tensor.extents[d];
      const std::int64_t all = outside::modulus(beyond[d], n);
      if (outside::turns(beyond[d]) && all > 0 && reaches_beyond(d, all)) {
        start[d] %= all;
        if (start[d] > 0) start[d] -= all;
      }
      if (beyond[d] < 0 && !reaches_beyond(d, all)) beyond[d] = outside::filling(beyond[d]);
      if (!reaches_beyond(d, n)) beyond[d] = outside::unknown;
    }
    drop_repeated();
  }
  friend constexpr bool operator==(const view& a, const view& b) {
    if (a.rank != b.rank || a.dims != b.dims || a.count != b.count) return false;
    for (int i = 0; i < b.count; ++i)
      if (a.digits[i] != b.digits[i]) return false;
    for (int d = 0; d < b.dims; ++d)
      if (a.start[d] != b.start[d] || a.beyond[d] != b.beyond[d]) return false;
    return true;
  }
  constexpr std::size_t hash() const {
    std::uint64_t h = static_cast<std::uint64_t>(rank + 16 * dims);
    for (int i = 0; i < count; ++i) {
      const digit& d = digits[i];
      h = (h + static_cast<std::uint64_t>(64 * d.owner + d.dim) +
           static_cast<std::uint64_t>(d.extent) * 4096 +
           static_cast<std::uint64_t>(d.stride) * 16777216) *
          0x9e3779b97f4a7c15u;
      h ^= h >> 32;
    }
    for (int d = 0; d < dims; ++d)
      h = h * 31 + static_cast<std::uint64_t>(start[d]) * 7 + static_cast<std::uint64_t>(beyond[d]);
    return hash_of(h);
  }

 private:
  static constexpr bool before(const digit& a, const digit& b) {
    if (a.owner == b.owner)
      return a.owner < 0 && (a.dim != b.dim ? a.dim < b.dim : a.stride > b.stride);
    if ((a.owner < 0) != (b.owner < 0)) return b.owner < 0;
    return a.owner < 0 ? a.owner > b.owner : a.owner < b.owner;
  }
  /// Removes the digits of repeated dimensions and of axes that nothing depends on.
  constexpr void drop_repeated() {
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      if (digits[i].dim < 0 && (digits[i].owner < 0 || repeats(digits[i].owner))) continue;
      if (kept == 0 || !joins(digits[kept - 1], digits[i]))
        digits[kept++] = digits[i];
      else if (digits[kept - 1].dim >= 0 && digits[kept - 1].stride == 0)
        --kept;
    }
    if (good()) count = kept;
  }
  /// Merges two consecutive digits into one if possible.
  static constexpr bool joins(digit& major, const digit& minor) {
    if (major.owner != minor.owner || major.dim != minor.dim) return false;
    if (counts_all(major.owner)) {
      major.stride += minor.stride;
      return true;
    }
    if (major.stride != minor.stride * minor.extent) return false;
    major.extent *= minor.extent;
    major.stride = minor.stride;
    return true;
  }
};

/// Uses one position of a dimension in which a tensor repeats, where all are equal. `own`: the
/// tensor's view of itself.
constexpr bool see_once(view& v, const view& own, const shape& tensor) {
  bool any = false;
  for (int d = 0; d < v.dims; ++d) {
    if (own.sees_along(d) || v.is_reduced_along(d) || v.reaches_beyond(d, tensor.extents[d]))
      continue;
    any = any || v.sees_along(d) || v.start[d] != own.start[d];
    v.start[d] = own.start[d];
    for (int i = 0; i < v.count; ++i)
      if (v.digits[i].dim == d) v.digits[i] = {v.digits[i].owner, no_dim, v.digits[i].extent, 0};
  }
  return any;
}

/// True if all of its positions are numbers inside of the tensor. (Unknown ones are not numbers.)
constexpr bool counts_positions(const shape& tensor, int dim) {
  return tensor.extents[dim] == max_elements;
}
/// True if it shows elements or numbers along a dimension, without padding.
constexpr bool lies_inside(const view& v, int dim, const shape& tensor) {
  return counts_positions(tensor, dim) || !v.reaches_beyond(dim, tensor.extents[dim]);
}
/// True if padding replaces positions below 0. (For positions, any number is valid.)
constexpr bool fills_positions(const view& v, const shape& tensor) {
  for (int d = 0; d < v.dims; ++d)
    if (v.beyond[d] != outside::unknown && counts_positions(tensor, d) &&
        v.reaches_beyond(d, max_elements))
      return true;
  return false;
}

/// All views, each once.
class view_table : segmented_vec<view> {
  using list = segmented_vec<view>;

 public:
  using list::operator[];  // one call, because it is read most
  constexpr int number(const view& v) {
    const std::size_t hash = v.hash();
    if (const int known = find(v, hash); known >= 0) return known;
    if (list::empty()) list::reserve(usual);
    list::push_back(v);
    reaches_.push_back(reach(v));
    index_.add(hash);
    const int added = static_cast<int>(list::size()) - 1;
    if (v.count == 0 && v.rank > 0) {  // a repeated scalar, too
      view scalar = v;
      scalar.rank = 0;
      number(scalar);
    }
    return added;
  }
  /// The cached result of view::reaches_beyond.
  constexpr bool reaches_beyond(int i, const shape& tensor) const {
    const reach& mine = reaches_.data()[i];
    bool beyond = mine.below;
    for (int d = 0; d < mine.dims; ++d) beyond = beyond || mine.greatest[d] >= tensor.extents[d];
    return beyond;
  }
  /// True if the only known padding is wraparound.
  constexpr bool is_unfilled(int i) const { return !reaches_.data()[i].filled; }
  /// Finds a view without digits: that of rank 0, or -1.
  constexpr int find_scalar(const view& v) const {
    if (v.count > 0) return -1;
    view s = v;
    s.rank = 0;
    return find(s, s.hash());
  }

 private:
  /// The extent of a view beyond each dimension of the tensor.
  struct reach {
    int dims = 0;
    bool below = false;   ///< true if some elements are below 0
    bool filled = false;  ///< true if the padding is known in some dimension
    std::int64_t greatest[max_rank];

    constexpr reach() {}
    constexpr explicit reach(const view& v) : dims(v.dims) {
      std::int64_t least[max_rank];
      for (int d = 0; d < dims; ++d) {
        least[d] = greatest[d] = v.start[d];
        filled = filled || outside::filling(v.beyond[d]) != outside::unknown;
      }
      for (int i = 0; i < v.count; ++i) {
        const digit& each = v.digits[i];
        if (each.dim < 0) continue;
        const std::int64_t more = (each.extent - 1) * each.stride;
        (more < 0 ? least : greatest)[each.dim] += more;
      }
      for (int d = 0; d < dims; ++d) below = below || least[d] < 0;
    }
    constexpr reach(const reach& other) { *this = other; }
    constexpr reach& operator=(const reach& other) {
      dims = other.dims;
      below = other.below;
      filled = other.filled;
      for (int d = 0; d < dims; ++d) greatest[d] = other.greatest[d];
      return *this;
    }
  };
  static constexpr std::size_t usual = 128;  ///< the typical number for common kinds of layers
  vec<reach> reaches_;                       ///< by view
  hash_index index_;

  constexpr int find(const view& v, std::size_t hash) const {
    return index_.find(hash, [&](int i) { return (*this)[i] == v; });
  }
};

}  // namespace partita::prove_detail
