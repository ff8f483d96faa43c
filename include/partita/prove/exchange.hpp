/// The effect of collectives on views and on pending sums, by their definitions.
#pragma once

#include <algorithm>

#include <partita/ir/collective.hpp>
#include <partita/prove/laws.hpp>
#include <partita/prove/movement.hpp>

namespace partita::prove_detail {

/// One collective, applied to a claim about its operand. Each function returns true if the result
/// is known.
class exchange {
 public:
  constexpr exchange(const collective& what, const mesh& m, const shape& operand,
                     const shape& tensor)
      : what_(what), mesh_(m), operand_(operand), tensor_(tensor) {}

  /// `identity`: the value of `outside` where the padding is the identity of the combiner.
  constexpr bool apply(view& v, pending& sums, int identity) const {
    switch (what_.kind) {
      case collective::all_reduce:
        return reduce(v, sums);
      case collective::reduce_scatter:
        return reduce(v, sums) && slice_all(v, sums);
      case collective::all_slice:
        return slice_all(v, sums);
      case collective::all_gather:
        return gather_all(v, sums);
      case collective::all_to_all:
        return transpose_all(v, sums);
      case collective::permute:
        return permute(v, sums, identity);
    }
    return false;
  }

 private:
  const collective& what_;
  const mesh& mesh_;
  const shape& operand_;
  const shape& tensor_;

  /// Completes a pending reduction. The maximum of equal values is that value; their sum is not.
  constexpr bool reduce(view& v, pending& sums) const {
    const bool again = is_idempotent(what_.combine);
    for (const auto& e : what_.axes) {
      if (mesh_.size(e.axis) == 1) continue;
      if (v.depends_on(e.axis)) return false;
      if (sums.contains(e.axis)) {
        if (sums.combine != what_.combine) return false;
      } else if (!again || sums.any()) {
        return false;
      }
    }
    for (const auto& e : what_.axes) sums.remove(e.axis);
    for (int d = 0; d < v.dims; ++d) v.beyond[d] = outside::unfilled(v.beyond[d]);
    return true;
  }
  /// Turns the major part of a dimension into the coordinate.
  constexpr bool slice(view& v, const pending& sums, int axis, int d, std::int64_t extent) const {
    const std::int64_t n = mesh_.size(axis);
    if (n == 1) return true;
    if (sums.contains(axis)) return false;
    int begin = 0;
    const int end = v.find(d, begin);
    if (begin == end) return true;  // it repeats
    if (extent % n != 0) return false;
    view r(v.rank, v.dims);
    for (int dim = 0; dim < v.dims; ++dim) {
      r.start[dim] = v.start[dim];
      r.beyond[dim] = v.beyond[dim];
    }
    digit of_axis{};
    for (int i = 0; i < v.count; ++i) {
      digit each = v.digits[i];
      if (i == begin) {
        if (each.extent % n != 0) return false;
        each.extent /= n;
        of_axis = {on_axis(axis), each.dim, n, each.stride * each.extent};
      }
      r.add(each.owner, each);
    }
    r.add(of_axis.owner, of_axis);
    v = r;
    return v.good();
  }
  constexpr bool slice_all(view& v, const pending& sums) const {
    shape s = operand_;
    for (const auto& e : what_.axes) {
      if (!slice(v, sums, e.axis, e.dim, s.extents[e.dim])) return false;
      s.extents[e.dim] /= mesh_.size(e.axis);
      v.normalize(tensor_);
    }
    return true;
  }
  /// Turns the coordinate into the major part of a dimension of `extent` elements.
  constexpr bool gather(view& v, const pending& sums, int axis, int d, std::int64_t extent) const {
    const std::int64_t n = mesh_.size(axis);
    if (n == 1) return true;
    if (sums.contains(axis)) return false;
    int place = 0;
    const int found = v.find(on_axis(axis), place);
    if (found > place + 1) return false;  // along two dimensions at once
    digit major{on_axis(axis), no_dim, n, 0};
    if (found == place + 1) major = v.digits[place];
    view r(v.rank, v.dims);
    for (int dim = 0; dim < v.dims; ++dim) {
      r.start[dim] = v.start[dim];
      r.beyond[dim] = v.beyond[dim];
    }
    bool added = false;
    const auto add = [&] {
      if (added) return;
      added = true;
      r.add(d, major);
      if (!v.has(d)) r.add(d, no_dim, extent, 0);
    };
    for (int i = 0; i < v.count; ++i) {
      if (i == place && found > place) continue;
      if (v.digits[i].owner < 0 || v.digits[i].owner >= d) add();
      r.add(v.digits[i].owner, v.digits[i]);
    }
    add();
    v = r;
    return v.good();
  }
  constexpr bool gather_all(view& v, const pending& sums) const {
    shape s = operand_;
    for (int i = what_.axes.count; i-- > 0;) {
      const auto e = what_.axes[i];
      if (!gather(v, sums, e.axis, e.dim, s.extents[e.dim])) return false;
      s.extents[e.dim] *= mesh_.size(e.axis);
      v.normalize(tensor_);
    }
    return true;
  }
  constexpr bool transpose_all(view& v, const pending& sums) const {
    shape s = operand_;
    const layout from = what_.gathers();
    for (int i = from.count; i-- > 0;) {
      const auto e = from[i];
      if (!gather(v, sums, e.axis, e.dim, s.extents[e.dim])) return false;
      s.extents[e.dim] *= mesh_.size(e.axis);
      v.normalize(tensor_);
    }
    for (const auto& e : what_.axes) {
      if (!slice(v, sums, e.axis, e.dim, s.extents[e.dim])) return false;
      s.extents[e.dim] /= mesh_.size(e.axis);
      v.normalize(tensor_);
    }
    return true;
  }

  /// The digits of a number that identifies senders and receivers.
  struct number_digits {
    digit list[max_digits];
    int count = 0;

    constexpr bool add(const digit& d) {
      if (d.extent == 1) return true;
      if (digit* last = count > 0 ? &list[count - 1] : nullptr;
          last != nullptr && last->dim == d.dim &&
          (d.dim < 0 || last->stride == d.stride * d.extent)) {  // one number
        last->extent *= d.extent;
        last->stride = d.stride;
        return true;
      }
      if (count == max_digits) return false;
      list[count++] = d;
      return true;
    }
  };
  /// True if senders are numbered by the axes of the receivers.
  constexpr bool same_axes() const {
    axis_set from;
    for (const auto& e : what_.from) from.insert(e.axis);
    return from == what_.along() && what_.from.count == what_.axes.count;
  }
  /// Renumbers members of a group: member p has the value of the member with number p in another
  /// order of the axes, so the digits of p become those of other coordinates.
  constexpr bool renumber(view& v, const pending& sums) const {
    if (!same_axes()) return false;
    number_digits of;  // major to minor
    for (const auto& e : what_.from) {
      if (mesh_.size(e.axis) > 1 && sums.contains(e.axis)) return false;
      int begin = 0;
      const int end = v.find(on_axis(e.axis), begin);
      if (end > begin + 1) return false;  // along two dimensions at once
      const digit none{0, no_dim, mesh_.size(e.axis), 0};
      if (!of.add(end > begin ? v.digits[begin] : none)) return false;
    }
    for (const auto& e : what_.from) v.drop(on_axis(e.axis));
    int at = 0;
    std::int64_t left = of.count > 0 ? of.list[0].extent : 1;  // of the current digit
    for (const auto& e : what_.axes) {
      std::int64_t need = mesh_.size(e.axis);
      while (need > 1) {
        if (left == 1) {
          if (++at >= of.count) return false;
          left = of.list[at].extent;
        }
        const digit& d = of.list[at];
        const std::int64_t part = left <= need ? left : need;
        if (left % part != 0 || need % part != 0) return false;
        left /= part;
        need /= part;
        if (d.dim < 0 && v.depends_on(e.axis)) return false;
        if (d.dim < 0) continue;
        // The coordinate counts in steps of `need`; each step is one step of the digit.
        if (!count_in(v, e.axis, part, need, d.dim, d.stride * left)) return false;
      }
    }
    v.normalize(tensor_);
    return v.good();
  }
  /// Adds a digit of a coordinate with `part` values, whose unit is `minor`. It is the whole
  /// coordinate, or the major one of two digits.
  constexpr bool count_in(view& v, int axis, std::int64_t part, std::int64_t minor, int dim,
                          std::int64_t stride) const {
    const std::int64_t n = mesh_.size(axis);
    if (part == n) return v.add(on_axis(axis), dim, n, stride), v.good();
    int begin = 0;
    const int end = v.find(on_axis(axis), begin);
    if (end == begin) {  // the first: the others continue it
      if (part * minor != n || stride % minor != 0) return false;
      v.add(on_axis(axis), dim, n, stride / minor);
      return v.good();
    }
    const digit& major = v.digits[begin];
    return major.dim == dim && stride == major.stride * minor;
  }

  /// Permutes the members of a group: a shift of its coordinates.
  constexpr bool permute(view& v, const pending& sums, int identity) const {
    const device_map& map = what_.map;
    if (map.form == device_map::renumbered) return renumber(v, sums);
    std::int64_t members = 1;
    bool depends = false;
    for (const auto& e : what_.axes) {
      members *= mesh_.size(e.axis);
      depends = depends || (mesh_.size(e.axis) > 1 && v.depends_on(e.axis));
      if (mesh_.size(e.axis) > 1 && sums.contains(e.axis) && map.form == device_map::shifted)
        return false;
    }
    if (map.form == device_map::ring && map.shift % members_moved_with(sums) != 0) return false;
    if (members == 1) return map.form != device_map::shifted || map.shift == 0;
    if (!depends) return map.form != device_map::shifted || map.shift == 0;
    // Dimensions along which the members form a sequence with equal steps.
    int dim = -1;
    std::int64_t step = 0;
    for (int d = 0; d < v.dims; ++d) {
      std::int64_t by = 0;
      if (!in_a_row(v, d, members, by)) return false;
      if (by == 0) continue;
      if (map.form == device_map::shifted && dim >= 0) return false;
      dim = d;
      step = by;
      if (map.form == device_map::mirrored) v.start[d] += step * (members - 1);
      if (map.form == device_map::ring && !turn(v, d, step, members)) return false;
    }
    // (A pending sum over devices is summed where nothing was sent, too.)
    const bool stays = !sums.any() || is_idempotent(sums.combine) || sums.combine == what_.combine;
    if (map.form == device_map::shifted)
      return shift(v, dim, step, members, stays ? identity : int{outside::unknown});
    for (int i = 0; i < v.count && map.form == device_map::mirrored; ++i)
      for (const auto& e : what_.axes)
        if (v.digits[i].owner == on_axis(e.axis)) v.digits[i].stride = -v.digits[i].stride;
    return true;
  }
  /// The number of adjacent members that move together because a sum is pending over axes, if other
  /// axes are more major.
  constexpr std::int64_t members_moved_with(const pending& sums) const {
    std::int64_t behind = 1, together = 1;
    bool some = false;
    for (int i = what_.axes.count; i-- > 0;) {
      const int axis = what_.axes[i].axis;
      const std::int64_t n = mesh_.size(axis);
      if (n == 1) continue;
      if (some && !sums.contains(axis)) together = behind;
      some = some || sums.contains(axis);
      behind *= n;
    }
    return together;
  }
  /// The step between members along a dimension of the tensor; 0: they see the same positions.
  constexpr bool in_a_row(const view& v, int dim, std::int64_t members, std::int64_t& step) const {
    std::int64_t of = members;
    bool all = true;
    for (const auto& e : what_.axes) {
      const std::int64_t n = mesh_.size(e.axis);
      of /= n;
      if (n == 1) continue;
      int found = -1;
      for (int i = 0; i < v.count; ++i)
        if (v.digits[i].owner == on_axis(e.axis) && v.digits[i].dim == dim) found = i;
      all = all && found >= 0;
      if (found < 0) continue;
      const std::int64_t stride = v.digits[found].stride;
      if (stride % of != 0 || (step != 0 && stride != step * of)) return false;
      step = stride / of;
    }
    return step == 0 || all;
  }
  constexpr bool turn(view& v, int dim, std::int64_t step, std::int64_t members) const {
    const std::int64_t n = tensor_.extents[dim], all = step * members;
    if (all < n || all > outside::farthest ||
        (v.reaches_beyond(dim, all) && !outside::turns(v.beyond[dim])))
      return false;
    if (outside::turns(v.beyond[dim]) && outside::modulus(v.beyond[dim], n) != all) return false;
    v.start[dim] = (v.start[dim] - what_.map.shift % members * step) % all;
    if (v.start[dim] > 0) v.start[dim] -= all;
    v.beyond[dim] = goes_around(v.beyond[dim], all, n);
    return true;
  }
  /// Shifts a view. Members that receive nothing see padding.
  constexpr bool shift(view& v, int dim, std::int64_t step, std::int64_t members,
                       int identity) const {
    const std::int64_t n = tensor_.extents[dim];
    // A shift by the number of members or more leaves all of them without a value.
    const std::int64_t by = std::clamp(std::int64_t{what_.map.shift}, -members, members);
    if (by == 0) return true;
    if (outside::turns(v.beyond[dim])) return false;
    const bool reached = v.reaches_beyond(dim, n);
    std::int64_t least = 0, greatest = 0;
    v.range(dim, least, greatest);
    // For one member: without the steps between members.
    const std::int64_t all = step * (members - 1);
    if (all < 0) return false;
    greatest -= all;
    const bool up = by > 0;  // members 0, ..., by - 1 receive nothing
    if (up ? greatest - step >= 0 : least + all + step < n) return false;
    const std::int64_t fill = reached && v.beyond[dim] != identity ? outside::unknown : identity;
    if (fill == outside::unknown && counts_positions(tensor_, dim)) return false;
    v.fill_beyond(dim, fill, tensor_);
    v.start[dim] -= by * step;
    return true;
  }
};

}  // namespace partita::prove_detail
