/// Views: which elements of a tensor a value holds, on every device.
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

/// A number of several values that a position is summed from: so many steps of so many elements of
/// a dimension of the tensor.
///
/// Its owner counts: a dimension of the value, whose index is made of its digits, major to minor,
/// or the coordinate of a device along an axis (of an iteration along a loop). Not one with default
/// values: arrays of digits are not set before they are used.
struct digit {
  std::int16_t owner;  ///< a dimension of the value, or what on_axis gives
  std::int16_t dim;    ///< of the tensor, or no_dim: the elements are the same for all its values
  std::int64_t extent, stride;

  friend constexpr bool operator==(const digit&, const digit&) = default;
};
constexpr std::int16_t on_axis(int axis) { return static_cast<std::int16_t>(-1 - axis); }
constexpr int axis_of(const digit& d) { return -1 - d.owner; }
/// The owner of digits that a value is reduced over: it is the sum (or what its combiner makes) of
/// what the view shows for each of their numbers. Unlike an axis, it counts each digit for itself.
inline constexpr int bound_axis = 31;

/// Is it an axis, of which each digit is the whole coordinate?
constexpr bool counts_all(int owner) { return owner < 0 && owner != on_axis(bound_axis); }

/// What stands where positions lie outside of the tensor.
///
/// Positions may also go around a padded tensor: they are taken modulo a number above the extent;
/// of those behind the end a filling says what stands there.
struct outside {
  static constexpr std::int64_t unknown = 0;
  static constexpr std::int64_t wraps = 1;  ///< what stands at the position modulo the extent
  static constexpr std::int64_t first_value =
      2;  ///< this and higher: a scalar, by number less this

  /// Positions farther out are not followed: beside a filling, such a modulus fits in 64 bits.
  static constexpr std::int64_t farthest = std::int64_t{1} << 42;
  static constexpr std::int64_t around(std::int64_t modulus, std::int64_t filling) {
    return -(modulus * fillings + (filling < fillings ? filling : unknown));
  }
  static constexpr bool turns(std::int64_t beyond) { return beyond < 0 || beyond == wraps; }
  /// What positions are taken modulo that turn.
  static constexpr std::int64_t modulus(std::int64_t beyond, std::int64_t extent) {
    return beyond < 0 ? -beyond / fillings : extent;
  }
  /// The scalar (as above) behind the end, or unknown.
  static constexpr std::int64_t filling(std::int64_t beyond) {
    return beyond < 0 ? -beyond % fillings : beyond == wraps ? unknown : beyond;
  }
  /// The same, but nothing is known of what stands behind the end.
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
/// of every dimension D. Digits of extent 1 (and 0) are left out; a dimension of the value without
/// digits repeats its elements, or has at most one. Digits stand by owner, dimensions first. Of
/// elements outside of the tensor in some dimensions each of these says what stands there.
struct view {
  int rank = 0;   ///< of the value
  int dims = 0;   ///< of the tensor
  int count = 0;  ///< of digits; above max_digits: a view that is too complicated, and no claim
  digit digits[max_digits];
  std::int64_t start[max_rank];
  std::int64_t beyond[max_rank];  ///< see outside

  constexpr view() {}
  constexpr view(const view& other) { *this = other; }
  /// (Only what is set: constant evaluation refuses to copy more, and it is much.)
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
  /// The whole tensor, as it is.
  constexpr explicit view(const shape& s) : view(s.rank, s.rank) {
    for (int d = 0; d < rank; ++d) add(d, d, s.extents[d], 1);
  }
  /// What view(tensor) is.
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

  /// Appends a digit, or makes the last one of the same owner larger (not of an axis, which all of
  /// its digits count).
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
  /// The digits of an owner: from `begin`, which is moved there, to the result.
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
  /// Does it see several positions along a dimension of the tensor?
  constexpr bool sees_along(int dim) const {
    for (int i = 0; i < count; ++i)
      if (digits[i].dim == dim) return true;
    return false;
  }
  /// Of how many elements of the tensor each one is the sum (or what else they are reduced to).
  constexpr std::int64_t reduced_elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < count; ++i)
      if (digits[i].owner == on_axis(bound_axis) && digits[i].dim >= 0)
        n = saturating_multiply(n, digits[i].extent);
    return n;
  }
  /// Is the value reduced over positions along a dimension of the tensor?
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
  /// Does it differ from device to device (or from iteration to iteration) along an axis?
  constexpr bool depends_on(int axis) const { return has(on_axis(axis)); }
  /// Has a dimension of the value only the same elements, over and over?
  constexpr bool repeats(int d) const {
    int begin = 0;
    for (const int end = find(d, begin); begin < end; ++begin)
      if (digits[begin].dim >= 0) return false;
    return true;
  }
  /// The least and the greatest position along a dimension of the tensor.
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
  /// Outside of a dimension now stands `fill`, also where other dimensions are outside: what is
  /// said of those is true no more if it is something else. Gives whether that was so.
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
  /// Digits of axes in the order of the axes, so that equal views are the same; and nothing is said
  /// of what is outside where nothing is.
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
  /// A dimension that only repeats has no digits; neither has an axis that nothing depends on.
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
  /// Two digits that follow each other as one.
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

/// Where a tensor is the same along a dimension, one position is as good as others. `own`: how it
/// sees itself.
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

/// Are its positions numbers, of which none is outside? (What is not known of them cannot be said.)
constexpr bool counts_positions(const shape& tensor, int dim) {
  return tensor.extents[dim] == max_elements;
}
/// Does it see along a dimension what is there, or numbers?
constexpr bool lies_inside(const view& v, int dim, const shape& tensor) {
  return counts_positions(tensor, dim) || !v.reaches_beyond(dim, tensor.extents[dim]);
}
/// Does something else stand where positions below 0 would? (Of them, any number is one.)
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
  using list::operator[];  // by one call, of what is read most
  constexpr int number(const view& v) {
    const std::size_t hash = v.hash();
    if (const int known = find(v, hash); known >= 0) return known;
    if (list::empty()) list::reserve(usual);
    list::push_back(v);
    reaches_.push_back(reach(v));
    index_.add(hash);
    const int added = static_cast<int>(list::size()) - 1;
    if (v.count == 0 && v.rank > 0) {  // a scalar that is repeated: it, too
      view scalar = v;
      scalar.rank = 0;
      number(scalar);
    }
    return added;
  }
  /// What view::reaches_beyond says, of what is known since it has a number.
  constexpr bool reaches_beyond(int i, const shape& tensor) const {
    const reach& mine = reaches_.data()[i];
    bool beyond = mine.below;
    for (int d = 0; d < mine.dims; ++d) beyond = beyond || mine.greatest[d] >= tensor.extents[d];
    return beyond;
  }
  /// Is nothing said of what stands beyond but that positions go around?
  constexpr bool is_unfilled(int i) const { return !reaches_.data()[i].filled; }
  /// Of a view without digits: that of rank 0, or -1.
  constexpr int find_scalar(const view& v) const {
    if (v.count > 0) return -1;
    view s = v;
    s.rank = 0;
    return find(s, s.hash());
  }

 private:
  /// How far a view reaches in each dimension of the tensor.
  struct reach {
    int dims = 0;
    bool below = false;   ///< of some dimension, elements below 0
    bool filled = false;  ///< is it known of some what stands beyond?
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
  static constexpr std::size_t usual = 128;  ///< of them: as many as kinds of layers give
  vec<reach> reaches_;                       ///< by view
  hash_index index_;

  constexpr int find(const view& v, std::size_t hash) const {
    return index_.find(hash, [&](int i) { return (*this)[i] == v; });
  }
};

}  // namespace partita::prove_detail
