/// Pieces: the positions of a value's elements along one dimension of an operand.
#pragma once

#include <cstdint>

#include <partita/prove/view.hpp>

namespace partita::prove_detail {

/// The positions start + sum of the digits (see view) that a value holds of one dimension. Local
/// digits come first, major to minor. `free`: all positions are equal, because their contents are.
struct piece {
  static constexpr int most = 12;
  bool free = false;
  std::int64_t start = 0;
  std::int64_t beyond = 0;
  int count = 0;  ///< above `most`: too complicated
  digit digits[most];

  constexpr piece() {}
  constexpr piece(const piece& other) { *this = other; }
  constexpr piece& operator=(const piece& other) {
    free = other.free;
    start = other.start;
    beyond = other.beyond;
    count = other.count;
    for (int i = 0; i < count && good(); ++i) digits[i] = other.digits[i];
    return *this;
  }
  constexpr bool good() const { return count <= most; }
  constexpr void add(int owner, std::int64_t extent, std::int64_t stride) {
    if (extent <= 1 || (owner < 0 && stride == 0) || !good()) return;
    if (counts_all(owner))
      for (int i = 0; i < count; ++i)
        if (digits[i].owner == owner) {
          digits[i].stride += stride;
          return;
        }
    if (count > 0 && owner >= 0 && digits[count - 1].owner == owner &&
        digits[count - 1].stride == stride * extent) {
      digits[count - 1].extent *= extent;
      digits[count - 1].stride = stride;
    } else if (count == most) {
      ++count;
    } else {
      digits[count++] = {static_cast<std::int16_t>(owner), 0, extent, stride};
    }
  }
  constexpr std::int64_t local_extent() const {
    std::int64_t n = 1;
    for (int i = 0; i < count; ++i)
      if (digits[i].owner >= 0) n *= digits[i].extent;
    return n;
  }
  constexpr std::int64_t least() const {
    std::int64_t at = start;
    for (int i = 0; i < count; ++i)
      if (digits[i].stride < 0) at += (digits[i].extent - 1) * digits[i].stride;
    return at;
  }
  constexpr std::int64_t greatest() const {
    std::int64_t at = start;
    for (int i = 0; i < count; ++i)
      if (digits[i].stride > 0) at += (digits[i].extent - 1) * digits[i].stride;
    return at;
  }
  constexpr bool lies_inside(std::int64_t extent) const {
    return free || (least() >= 0 && greatest() < extent);
  }
  /// True if it is all positions of a dimension, in order, on every device.
  constexpr bool whole(std::int64_t extent) const {
    if (free || start != 0) return false;
    if (extent <= 1) return count == 0;
    return count == 1 && digits[0].owner >= 0 && digits[0].extent == extent &&
           digits[0].stride == 1;
  }
  /// True if each device holds adjacent positions, in ascending order.
  constexpr bool in_order() const {
    int here = 0;
    for (int i = 0; i < count; ++i)
      if (digits[i].owner >= 0 && (++here > 1 || digits[i].stride != 1)) return false;
    return true;
  }
  /// True if both hold the same positions; padding may differ.
  constexpr bool same_positions(const piece& other) const {
    if (free != other.free || start != other.start || count != other.count) return false;
    for (int i = 0; i < count; ++i)
      if (digits[i] != other.digits[i]) return false;
    return true;
  }
  /// The same for digits in any order.
  constexpr bool same_digits(const piece& other) const {
    if (start != other.start || count != other.count) return false;
    for (int i = 0; i < count; ++i) {
      bool found = false;
      for (int j = 0; j < count; ++j) found = found || digits[i] == other.digits[j];
      if (!found) return false;
    }
    return true;
  }
  /// The end of the range [0, end) if the devices together hold each of its positions once and
  /// nothing else; otherwise -1.
  constexpr std::int64_t covered() const {
    if (free || start != 0) return -1;
    std::int64_t end = 1;
    for (int found = 0; found < count; ++found) {
      int next = -1;
      for (int i = 0; i < count; ++i)
        if (digits[i].stride == end) next = i;
      if (next < 0) return -1;
      end *= digits[next].extent;
    }
    return end;
  }
};

/// Maps positions in a tensor to those in an operand that is itself a view of it.
class relative_view {
 public:
  /// `whole`: the global operand's view of the tensor. `part`: the view of a value on the same
  /// tensor. `own`: the tensor's view of itself, see meanings::own. `loops`: the value has loops in
  /// any order instead of the operand's dimensions, and the digits of pieces name their loop.
  constexpr relative_view(const view& whole, const shape& operand, const view& part,
                          const shape& tensor, const view* own, bool loops = false)
      : whole_(whole), operand_(operand), part_(part), tensor_(tensor), own_(own), loops_(loops) {}

  /// Finds the piece of each dimension of the operand that the value holds. False if it holds none,
  /// or this is unknown.
  constexpr bool find(piece* pieces) const {
    if ((part_.rank != operand_.rank && !loops_) || part_.dims != whole_.dims || !whole_is_known())
      return false;
    for (int d = 0; d < operand_.rank; ++d) {
      pieces[d] = piece();
      pieces[d].free = whole_.repeats(d);
    }
    if (!loops_ && whole_ == part_) {
      for (int d = 0; d < operand_.rank; ++d)
        if (!pieces[d].free) pieces[d].add(0, operand_.extents[d], 1);
      return true;
    }
    ranges steps(whole_.count);
    for (int i = 0; i < part_.count; ++i)
      if (!add(part_.digits[i], pieces, steps)) return false;
    for (int dim = 0; dim < whole_.dims; ++dim)
      if (!same_beyond(dim) || !stays_in_part(dim) || !add_start(dim, pieces, steps)) return false;
    for (int d = 0; d < operand_.rank; ++d)
      if (!pieces[d].good()) return false;
    return stays_in_parts(steps);
  }
  /// The inverse: true if the value holds these pieces, whose digits name their owners.
  constexpr bool holds(const piece* pieces) const {
    for (int dim = 0; dim < whole_.dims; ++dim)
      if (!is_known(dim) || (whole_.reaches_beyond(dim, tensor_.extents[dim]) &&
                             part_.beyond[dim] != whole_.beyond[dim]))
        return false;
    view v(part_.rank, whole_.dims), seen = part_;
    for (int dim = 0; dim < whole_.dims; ++dim) v.start[dim] = whole_.start[dim];
    for (int d = 0; d < operand_.rank; ++d) {
      if (pieces[d].free ? !whole_.repeats(d) : !show(pieces, d, v)) return false;
    }
    v.normalize(tensor_);
    seen.normalize(tensor_);
    if (own_ != nullptr && see_once(v, *own_, tensor_)) v.normalize(tensor_);
    for (int dim = 0; dim < whole_.dims; ++dim) v.beyond[dim] = seen.beyond[dim];
    return v.good() && v == seen;
  }
  /// True if positions along a dimension also occur along an earlier one.
  static constexpr bool shares_owner(const piece* pieces, int d) {
    for (int i = 0; i < pieces[d].count; ++i)
      for (int other = 0; other < d && pieces[d].digits[i].owner >= 0; ++other)
        for (int k = 0; k < pieces[other].count; ++k)
          if (pieces[other].digits[k].owner == pieces[d].digits[i].owner) return true;
    return false;
  }
  /// Adds to `v` a value's view of the tensor for the piece of dimension d. If that consists of
  /// several digits, they are filled from the minor one on, without carry.
  constexpr bool show(const piece* pieces, int d, view& v) const {
    const piece& mine = pieces[d];
    if (shares_owner(pieces, d)) return false;  // also if only the operand's elements repeat
    int begin = 0;
    const int end = whole_.find(d, begin);
    if (begin == end) return true;
    const std::int64_t most = weight(begin);
    if (mine.start % most != 0) return false;
    if (const digit& major = whole_.digits[begin]; major.dim >= 0)
      v.start[major.dim] += mine.start / most * major.stride;
    std::int64_t reach[max_digits] = {};
    for (int i = 0; i < mine.count; ++i) {
      const digit& each = mine.digits[i];
      int at[max_digits], count = 0;
      std::int64_t parts[max_digits], steps[max_digits];
      std::int64_t rest = each.extent, stride = each.stride;
      bool shows = false;
      while (rest > 1) {
        int k = begin;
        while (k < end && stride % weight(k) != 0) ++k;
        if (k == end || (stride < 0 && k != begin) || count == max_digits) return false;
        const std::int64_t step = stride / weight(k);
        std::int64_t room = rest;
        if (k != begin) {
          if (whole_.digits[k].extent % step != 0) return false;
          room = whole_.digits[k].extent / step;
          if (room > rest) room = rest;
        }
        if (room <= 1 || rest % room != 0) return false;
        shows = shows || whole_.digits[k].dim >= 0;
        at[count] = k;
        parts[count] = room;
        steps[count++] = step;
        reach[k] += (room - 1) * step;
        if (k != begin && reach[k] >= whole_.digits[k].extent) return false;
        rest /= room;
        stride *= room;
      }
      if (each.owner < 0 && count > 1 && shows) return false;  // a coordinate is not split
      for (int k = count; k-- > 0;) {
        const digit& from = whole_.digits[at[k]];
        v.add(each.owner, from.dim, parts[k], steps[k] * from.stride);
      }
    }
    return v.good();
  }

 private:
  const view& whole_;
  const shape& operand_;
  const view& part_;
  const shape& tensor_;
  const view* own_;
  bool loops_;

  /// The range of steps of a value along each digit of the operand's view.
  struct ranges {
    std::int64_t least[max_digits], greatest[max_digits];

    constexpr explicit ranges(int digits) {  // (others are not used)
      for (int k = 0; k < digits; ++k) least[k] = greatest[k] = 0;
    }
    constexpr void grow(int k, std::int64_t steps) {
      std::int64_t& end = steps < 0 ? least[k] : greatest[k];
      end = saturating_add(end, steps);
    }
    constexpr void move(int k, std::int64_t steps) {
      least[k] = saturating_add(least[k], steps);
      greatest[k] = saturating_add(greatest[k], steps);
    }
  };

  constexpr int owner_in(const digit& part) const {
    return part.owner < 0 || loops_ ? part.owner : 0;
  }
  /// True if the contents are known. (For positions, any number is; a tensor without elements has
  /// nothing unknown.)
  constexpr bool is_known(int dim) const {
    const std::int64_t n = tensor_.extents[dim];
    return n == 0 || n == max_elements || whole_.beyond[dim] != outside::unknown ||
           !whole_.reaches_beyond(dim, n);
  }
  constexpr bool whole_is_known() const {
    for (int dim = 0; dim < whole_.dims; ++dim)
      if (!is_known(dim)) return false;
    return true;
  }
  /// True if the value has the same padding as the operand.
  constexpr bool same_beyond(int dim) const {
    const std::int64_t extent = tensor_.extents[dim];
    return part_.beyond[dim] == whole_.beyond[dim] || !whole_.reaches_beyond(dim, extent) ||
           !part_.reaches_beyond(dim, extent);
  }
  /// True unless padding of a tensor dimension that is a minor part of an operand dimension would
  /// be mixed with its other elements.
  constexpr bool stays_in_part(int dim) const {
    if (!part_.reaches_beyond(dim, tensor_.extents[dim])) return true;
    for (int i = 1; i < whole_.count; ++i)
      if (whole_.digits[i].dim == dim && is_major(i) &&
          whole_.digits[i - 1].owner == whole_.digits[i].owner)
        return false;
    return true;
  }
  /// True if digit i of the operand's view is a minor one of its dimension.
  constexpr bool is_minor(int i) const {
    return i > 0 && whole_.digits[i - 1].owner == whole_.digits[i].owner;
  }
  /// True unless, in a dimension of several digits, positions of a minor digit continue into the
  /// next step of a major one.
  constexpr bool stays_in_parts(const ranges& steps) const {
    for (int k = 0; k < whole_.count; ++k)
      if (is_minor(k) && (steps.least[k] < 0 || steps.greatest[k] >= whole_.digits[k].extent))
        return false;
    return true;
  }
  static constexpr std::int64_t magnitude(std::int64_t n) { return n < 0 ? -n : n; }
  /// The number of positions of its dimension in a step of digit i of the operand's view.
  constexpr std::int64_t weight(int i) const {
    std::int64_t n = 1;
    for (int k = i + 1; k < whole_.count && whole_.digits[k].owner == whole_.digits[i].owner; ++k)
      n *= whole_.digits[k].extent;
    return n;
  }
  /// True if a digit has the largest steps along its dimension of the tensor.
  constexpr bool is_major(int i) const {
    for (int k = 0; k < whole_.count; ++k)
      if (whole_.digits[k].dim == whole_.digits[i].dim &&
          magnitude(whole_.digits[k].stride) > magnitude(whole_.digits[i].stride))
        return false;
    return true;
  }
  /// The digit of the operand's view with the largest steps that divide a stride, or -1.
  constexpr int digit_for(int dim, std::int64_t stride) const {
    int best = -1;
    for (int k = 0; k < whole_.count; ++k) {
      const digit& each = whole_.digits[k];
      if (each.dim != dim || each.stride == 0 || stride % each.stride != 0) continue;
      if (best < 0 || magnitude(each.stride) > magnitude(whole_.digits[best].stride)) best = k;
    }
    return best;
  }
  /// Handles elements that repeat in a part of a dimension as often as in the operand.
  constexpr bool repeat(const digit& part, piece* pieces, ranges& steps) const {
    const auto number = [&](const view& v, const digit* at) {  // among those of the same owner
      int n = 0;
      for (int i = 0; &v.digits[i] != at; ++i)
        n += v.digits[i].owner == part.owner && v.digits[i].dim < 0;
      return n;
    };
    const int wanted = number(part_, &part);
    for (int k = 0; k < whole_.count; ++k) {
      const digit& each = whole_.digits[k];
      if (each.owner != part.owner || each.dim >= 0 || number(whole_, &each) != wanted) continue;
      if (each.extent != part.extent) return false;
      pieces[part.owner].add(0, part.extent, weight(k));
      steps.grow(k, part.extent - 1);
      return true;
    }
    return false;
  }
  /// Handles elements that repeat more often than in the operand: steps of size zero.
  constexpr bool repeat_more(const digit& part, piece* pieces) const {
    for (int k = 0; k < whole_.count; ++k)
      if (whole_.digits[k].owner == part.owner && whole_.digits[k].dim < 0) return false;
    pieces[part.owner].add(0, part.extent, 0);
    return true;
  }
  /// The same for earlier digits, as long as all positions are equal.
  constexpr void repeat_before(const digit& part, piece& to) const {
    for (int i = 0; &part_.digits[i] != &part; ++i)
      if (part_.digits[i].owner == part.owner && part_.digits[i].dim < 0)
        to.add(0, part_.digits[i].extent, 0);
  }
  /// A dimension of the operand with one element that represents a dimension without digits, or -1.
  /// (If padded, a value can be sharded along it, into this element and padding.)
  constexpr int only_position(int dim) const {
    for (int k = 0; k < whole_.count; ++k)
      if (whole_.digits[k].dim == dim) return -1;
    const auto fits = [&](int d) { return operand_.extents[d] == 1 && !whole_.has(d); };
    if (counts_itself(dim)) return dim;
    for (int i = 0; i < part_.count; ++i)
      if (part_.digits[i].dim == dim && part_.digits[i].owner >= 0 && !loops_)
        return fits(part_.digits[i].owner) ? part_.digits[i].owner : -1;
    if (whole_.dims == operand_.rank && fits(dim)) return dim;
    for (int d = 0; d < operand_.rank; ++d)
      if (fits(d)) return d;
    return -1;
  }
  /// True if all positions of a dimension of the tensor and of the operand are equal, so that they
  /// are interchangeable.
  constexpr bool counts_itself(int dim) const {
    return own_ != nullptr && whole_.dims == operand_.rank && operand_.extents[dim] > 1 &&
           operand_.extents[dim] == tensor_.extents[dim] && !whole_.has(dim) &&
           !own_->sees_along(dim) && !whole_.reaches_beyond(dim, tensor_.extents[dim]);
  }
  /// The padding of a dimension of the operand: that of the tensor, if nothing else is between. Its
  /// positions are steps, from `first` on.
  constexpr std::int64_t beyond(int dim, const piece& of, std::int64_t extent, std::int64_t first,
                                std::int64_t step) const {
    const std::int64_t n = tensor_.extents[dim];
    if (part_.beyond[dim] == outside::wraps)
      return magnitude(step) * extent == n ? outside::wraps : outside::unknown;
    if (part_.beyond[dim] < 0)
      return first == 0 && step == 1 && extent == n ? part_.beyond[dim] : outside::unknown;
    const auto meets = [&](std::int64_t from, std::int64_t to) {  // positions of the operand
      const checked a = checked(from) * step + first, b = checked(to) * step + first;
      if (from > to || a.overflowed() || b.overflowed()) return from <= to;
      const std::int64_t low = (step > 0 ? a : b).value_or(0),
                         high = (step > 0 ? b : a).value_or(0);
      return low < n && high >= 0;
    };
    const bool some = meets(of.least(), -1) || meets(extent, of.greatest());
    return some ? outside::unknown : part_.beyond[dim];
  }
  constexpr bool add(const digit& part, piece* pieces, ranges& steps) const {
    if (part.dim < 0)
      return !loops_ && part.owner >= 0 &&
             (pieces[part.owner].free || repeat(part, pieces, steps) || repeat_more(part, pieces));
    if (const int d = only_position(part.dim); d >= 0) {
      if (part.owner >= 0 && part.owner != d && !loops_) return false;
      if (pieces[d].free && part.owner >= 0 && !loops_) repeat_before(part, pieces[d]);
      pieces[d].free = false;
      pieces[d].add(owner_in(part), part.extent, part.stride);
      return true;
    }
    digit rest = part;
    // From the major end: the part that exceeds a digit of the operand goes to one with larger
    // steps.
    std::int64_t parts[max_digits];  // (written before they are read)
    int at[max_digits], count = 0;
    while (rest.extent > 1) {
      const int k = digit_for(rest.dim, rest.stride);
      if (k < 0 || count == max_digits) return false;
      const digit& each = whole_.digits[k];
      const std::int64_t steps = magnitude(rest.stride / each.stride);
      std::int64_t room = each.extent / steps;
      if (rest.extent <= room || is_major(k)) room = rest.extent;
      if (room < 1 || rest.extent % room != 0) return false;
      if (room == 1) return false;
      parts[count] = room;
      at[count++] = k;
      rest.extent /= room;
      rest.stride *= room;
      if (rest.extent > 1 && part.owner < 0) return false;  // a coordinate is not split
    }
    std::int64_t stride = rest.stride;
    for (int i = count; i-- > 0;) {
      stride /= parts[i];
      const digit& each = whole_.digits[at[i]];
      if (part.owner >= 0 && part.owner != each.owner && !loops_) return false;
      pieces[each.owner].add(owner_in(part), parts[i], stride / each.stride * weight(at[i]));
      steps.grow(at[i], saturating_multiply(parts[i] - 1, stride / each.stride));
    }
    return true;
  }
  /// True if a dimension of the operand consists of complete dimensions of the tensor, and the
  /// value sees no padding except along the major one.
  constexpr bool holds_rows(int major) const {
    for (int i = major; i < whole_.count && whole_.digits[i].owner == whole_.digits[major].owner;
         ++i) {
      const digit& each = whole_.digits[i];
      if (each.dim < 0 || each.stride != 1 || whole_.start[each.dim] != 0 ||
          each.extent != tensor_.extents[each.dim] || outside::turns(part_.beyond[each.dim]) ||
          (i > major && part_.reaches_beyond(each.dim, each.extent)))
        return false;
    }
    return true;
  }
  /// For a dimension of the tensor made of several operand dimensions, moves its padding to the
  /// major one, if the pieces of the others stay inside.
  constexpr void pass_beyond(int dim, piece* pieces) const {
    if (outside::turns(part_.beyond[dim]) || whole_.start[dim] != 0) return;
    int major = -1;
    std::int64_t reach = 0;
    for (int i = 0; i < whole_.count; ++i) {
      const digit& each = whole_.digits[i];
      if (each.dim != dim) continue;
      if (each.stride <= 0 || each.extent != operand_.extents[each.owner]) return;
      if (is_major(i))
        major = i;
      else if (pieces[each.owner].lies_inside(each.extent))
        reach += (each.extent - 1) * each.stride;
      else
        return;
    }
    if (major < 0) return;
    const digit& most = whole_.digits[major];
    if (reach < most.stride && most.stride * most.extent == tensor_.extents[dim])
      pieces[most.owner].beyond = part_.beyond[dim];
  }
  constexpr bool add_start(int dim, piece* pieces, ranges& taken) const {
    std::int64_t rest = part_.start[dim] - whole_.start[dim];
    int digits = 0, last = -1;
    for (int k = 0; k < whole_.count; ++k)
      if (whole_.digits[k].dim == dim) {
        ++digits;
        last = k;
      }
    if (const int d = digits == 0 ? only_position(dim) : -1; d >= 0) {
      piece& to = pieces[d];
      if (rest == 0 && !part_.sees_along(dim)) return true;
      if (counts_itself(dim)) {
        const std::int64_t at = part_.start[dim];
        if (!part_.sees_along(dim) && at >= 0 && at < tensor_.extents[dim]) return true;
        to.free = false;
        to.start += part_.start[dim];
        to.beyond = beyond(dim, to, operand_.extents[dim], 0, 1);
        return true;
      }
      bool first = true;
      for (int other = 0; other < dim; ++other)
        if (part_.start[other] != whole_.start[other] || part_.sees_along(other))
          first = first && only_position(other) != d;
      if (!first) return false;  // it may be outside along either one
      to.free = to.free && rest == 0;
      to.start += rest;
      to.beyond = beyond(dim, to, 1, whole_.start[dim], 1);
      return true;
    }
    if (digits == 1) {
      const digit& only = whole_.digits[last];
      if (rest % only.stride != 0) return false;
      piece& to = pieces[only.owner];
      to.start += rest / only.stride * weight(last);
      taken.move(last, rest / only.stride);
      if (is_minor(last)) return true;
      to.beyond = weight(last) == 1  ? beyond(dim, to, operand_.extents[only.owner],
                                              whole_.start[dim], only.stride)
                  : holds_rows(last) ? part_.beyond[dim]
                                     : outside::unknown;
      return true;
    }
    while (rest != 0) {
      int k = -1;
      for (int i = 0; i < whole_.count; ++i) {
        const digit& each = whole_.digits[i];
        if (each.dim != dim || each.stride > rest || each.stride <= 0) continue;
        if (k < 0 || each.stride > whole_.digits[k].stride) k = i;
      }
      if (k < 0) return false;
      const std::int64_t steps = rest / whole_.digits[k].stride;
      taken.move(k, steps);
      pieces[whole_.digits[k].owner].start += steps * weight(k);
      rest -= steps * whole_.digits[k].stride;
    }
    pass_beyond(dim, pieces);
    return true;
  }
};

constexpr int first_digit(const view& v, int d) {
  int first = 0;
  v.find(d, first);
  return first;
}
/// True if a dimension of a value is all of a dimension of the tensor, in ascending or descending
/// order, and the value sees nothing else of that.
constexpr bool is_all_of_one(const view& v, int d, const shape& tensor) {
  int first = 0;
  if (v.find(d, first) != first + 1) return false;
  const digit& only = v.digits[first];
  if (only.dim < 0 || only.extent != tensor.extents[only.dim] || only.stride * only.stride != 1)
    return false;
  for (int i = 0; i < v.count; ++i)
    if (i != first && v.digits[i].dim == only.dim) return false;
  return true;
}
/// The view of a tensor by a value that sees an operand, which sees the tensor. False if it is not
/// a view, or if it sees padding of the operand. (Sums of repeated elements stay sums of the same
/// number.)
constexpr bool see_through(const view& whole, const shape& operand, const view& part,
                           const shape& tensor, view& v) {
  unsigned turned = 0;  // dimensions in which the part wraps around
  for (int d = 0; d < operand.rank; ++d) {
    if (!part.reaches_beyond(d, operand.extents[d])) continue;
    if (part.beyond[d] != outside::wraps || !is_all_of_one(whole, d, tensor)) return false;
    turned |= 1u << whole.digits[first_digit(whole, d)].dim;
  }
  piece pieces[max_rank];
  for (int d = 0; d < operand.rank; ++d) pieces[d].start = part.start[d];
  for (int i = 0; i < part.count; ++i) {
    const digit& each = part.digits[i];
    if (each.dim < 0) return false;
    pieces[each.dim].add(each.owner, each.extent, each.stride);
  }
  v = view(part.rank, whole.dims);
  for (int dim = 0; dim < whole.dims; ++dim) {
    v.start[dim] = whole.start[dim];
    if ((turned >> dim & 1u) != 0) v.beyond[dim] = outside::wraps;
    if (!whole.reaches_beyond(dim, tensor.extents[dim])) continue;
    if (whole.beyond[dim] != outside::wraps) return false;
    v.beyond[dim] = outside::wraps;
  }
  const relative_view in_whole(whole, operand, part, tensor, nullptr, true);
  for (int d = 0; d < operand.rank; ++d)
    if (!pieces[d].good() || !in_whole.show(pieces, d, v)) return false;
  return v.reduced_elements() == part.reduced_elements();
}

/// The view of a tensor with one piece of each of its dimensions.
constexpr view as_view(const piece* pieces, int rank) {
  view v(rank, rank);
  for (int d = 0; d < rank; ++d) {
    const piece& mine = pieces[d];
    v.start[d] = mine.start;
    v.beyond[d] = mine.beyond;
    for (int i = 0; i < mine.count; ++i)
      v.add(mine.digits[i].owner < 0 ? mine.digits[i].owner : d, d, mine.digits[i].extent,
            mine.digits[i].stride);
  }
  return v;
}

}  // namespace partita::prove_detail
