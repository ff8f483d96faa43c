/// The effect of ops that only move elements on a view. Each function returns true if the result is
/// a view; otherwise the argument must not be used.
#pragma once

#include <partita/ir/program.hpp>
#include <partita/op/registry.hpp>
#include <partita/prove/view.hpp>

namespace partita::prove_detail {

/// Renumbers dimensions of the value: d becomes to(d).
template <class To>
constexpr view with_owners(const view& v, int rank, const To& to) {
  view r(rank, v.dims);
  for (int d = 0; d < v.dims; ++d) {
    r.start[d] = v.start[d];
    r.beyond[d] = v.beyond[d];
  }
  for (int i = 0; i < v.count; ++i) {
    const int owner = v.digits[i].owner;
    r.add(owner < 0 ? owner : to(owner), v.digits[i]);
  }
  return r;
}

/// The maximum number of elements along an owner that may be in the tensor: all later ones (minor
/// to major) are outside, whatever the other digits are. -1: all.
constexpr std::int64_t reach_inside(const view& v, int owner, const shape& tensor) {
  int begin = 0;
  const int end = v.find(owner, begin), first = begin;
  for (; begin < end; ++begin) {
    const digit& each = v.digits[begin];
    if (each.dim < 0 || outside::turns(v.beyond[each.dim])) break;
    std::int64_t least = 0, greatest = 0;
    v.range(each.dim, least, greatest);
    (each.stride > 0 ? greatest : least) -= (each.extent - 1) * each.stride;
    if (each.stride > 0 ? least + each.stride < tensor.extents[each.dim]
                        : greatest + each.stride >= 0)
      break;
  }
  if (begin == first) return -1;
  std::int64_t n = 1;
  for (; begin < end; ++begin) n *= v.digits[begin].extent;
  return n;
}

/// Restricts a view to where another one may show elements of its tensor. False if the result is
/// not a view.
constexpr bool restrict_to(view& v, const view& inside, const shape& tensor) {
  view r = v;
  r.count = 0;
  for (int begin = 0, end = 0; begin < v.count; begin = end) {
    const int owner = v.digits[begin].owner;
    end = v.find(owner, begin);
    std::int64_t left = reach_inside(inside, owner, tensor);
    int first = left < 0 ? begin : end;
    for (; left > 1 && first > begin; left /= v.digits[first].extent) {
      const std::int64_t n = v.digits[--first].extent;
      if (n < left ? left % n != 0 : n % left != 0) return false;
      if (n >= left) break;
    }
    for (int i = first; i < end; ++i) {
      digit each = v.digits[i];
      if (i == first && left > 1) each.extent = left;
      r.add(owner, each);
    }
  }
  v = r;
  return v.good();
}

constexpr bool transpose(view& v, span<const std::int64_t> permutation) {
  int to[max_rank] = {};
  for (int d = 0; d < v.rank; ++d) to[permutation[d]] = d;
  v = with_owners(v, v.rank, [&](int d) { return to[d]; });
  return true;
}

/// (A repeated dimension of size 1 has no digits.)
constexpr bool broadcast(view& v, const shape& to, span<const std::int64_t> dims) {
  v = with_owners(v, to.rank, [&](int d) { return static_cast<int>(dims[d]); });
  return true;
}

/// Reshapes a view: splits the digits of all dimensions, in row-major order, differently.
constexpr bool reshape(view& v, const shape& from, const shape& to) {
  view r = with_owners(v, 0, [](int d) { return d; });
  r.rank = to.rank;
  r.count = 0;
  // The remaining digits, minor ones first; a dimension without digits repeats.
  view all(1, v.dims);
  if (from.elements() == 0) {
    v = r;
    return true;
  }
  for (int d = 0; d < v.rank; ++d) {
    int begin = 0;
    const int end = v.find(d, begin);
    if (begin == end) all.add(0, no_dim, from.extents[d], 0);
    for (; begin < end; ++begin) all.add(0, v.digits[begin]);
  }
  if (!all.good()) return false;
  view back(to.rank, v.dims);  // minor digits of each dimension first
  int at = all.count - 1;
  std::int64_t taken = 1;  // of digit `at`, in its minor part
  for (int d = to.rank; d-- > 0;) {
    std::int64_t left = to.extents[d];
    while (left > 1) {
      if (at < 0) return false;
      const digit& from_digit = all.digits[at];
      const std::int64_t rest = from_digit.extent / taken;
      const std::int64_t part = greatest_common_divisor(rest, left);
      if (part != rest && part != left) return false;
      if (back.count == max_digits) return false;
      back.digits[back.count++] = {static_cast<std::int16_t>(d), from_digit.dim, part,
                                   from_digit.stride * taken};
      left /= part;
      taken *= part;
      if (taken == from_digit.extent) {
        --at;
        taken = 1;
      }
    }
  }
  for (int i = back.count; i-- > 0;) r.add(back.digits[i].owner, back.digits[i]);
  for (int i = 0; i < v.count; ++i)
    if (v.digits[i].owner < 0) r.add(v.digits[i].owner, v.digits[i]);
  v = r;
  return v.good();
}

/// Slices elements [from, from + n * step) of a dimension, every step-th. If it repeats, all
/// elements are equal.
constexpr bool slice(view& v, int d, std::int64_t from, std::int64_t n, std::int64_t step) {
  int begin = 0;
  const int end = v.find(d, begin);
  if (begin == end) return true;
  view r = with_owners(v, v.rank, [](int each) { return each; });
  r.count = 0;
  for (int i = 0; i < begin; ++i) r.add(v.digits[i].owner, v.digits[i]);
  std::int64_t inner = 1;
  for (int i = begin + 1; i < end; ++i) inner *= v.digits[i].extent;
  const digit& major = v.digits[begin];
  if (end == begin + 1) {
    if (major.dim >= 0) r.start[major.dim] += from * major.stride;
    r.add(d, major.dim, n, major.stride * step);
  } else {  // complete steps of the major digit, or a part of one
    if (step != 1) return false;
    if (from % inner == 0 && n % inner == 0) {
      if (major.dim >= 0) r.start[major.dim] += from / inner * major.stride;
      r.add(d, major.dim, n / inner, major.stride);
      for (int i = begin + 1; i < end; ++i) r.add(d, v.digits[i]);
    } else if (from / inner == (from + n - 1) / inner) {
      if (major.dim >= 0) r.start[major.dim] += from / inner * major.stride;
      view rest = r;
      for (int i = begin + 1; i < end; ++i) rest.add(d, v.digits[i]);
      for (int i = end; i < v.count; ++i) rest.add(v.digits[i].owner, v.digits[i]);
      v = rest;
      return v.good() && slice(v, d, from % inner, n, 1);
    } else {
      return false;
    }
  }
  for (int i = end; i < v.count; ++i) r.add(v.digits[i].owner, v.digits[i]);
  v = r;
  return v.good();
}

constexpr bool reverse(view& v, int d) {
  int begin = 0;
  for (const int end = v.find(d, begin); begin < end; ++begin) {
    digit& each = v.digits[begin];
    if (each.dim >= 0) v.start[each.dim] += (each.extent - 1) * each.stride;
    each.stride = -each.stride;
  }
  return true;
}

/// The padding if positions wrap around at `all`, the extent n or that of a padded tensor.
constexpr std::int64_t goes_around(std::int64_t beyond, std::int64_t all, std::int64_t n) {
  return all == n ? outside::wraps : outside::around(all, outside::filling(beyond));
}

/// The only digit of a dimension, or null.
template <class View>
constexpr auto only_digit(View& v, int d) -> decltype(v.digits + 0) {
  int begin = 0;
  return v.find(d, begin) == begin + 1 ? v.digits + begin : nullptr;
}

/// Rolls a dimension. Only if its steps wrap once around a dimension of the tensor.
constexpr bool roll(view& v, int d, std::int64_t shift, const shape& tensor) {
  if (v.repeats(d)) return true;
  const digit* const only = only_digit(v, d);
  if (only == nullptr) return false;
  const int at = only->dim;
  const std::int64_t around = only->extent * only->stride, n = around < 0 ? -around : around;
  if (n != tensor.extents[at] || (v.reaches_beyond(at, n) && v.beyond[at] != outside::wraps))
    return false;
  v.start[at] = (v.start[at] - shift % only->extent * only->stride) % n;
  if (v.start[at] > 0) v.start[at] -= n;
  v.beyond[at] = outside::wraps;
  return true;
}

/// A dimension of the tensor along which the value holds one position on a device, or -1.
constexpr int dimension_of_one(const view& v, int d) {
  const auto fits = [&](int dim) {
    for (int i = 0; i < v.count; ++i)
      if (v.digits[i].dim == dim && v.digits[i].owner >= 0) return false;
    return true;
  };
  if (v.dims == v.rank && fits(d)) return d;
  for (int dim = 0; dim < v.dims; ++dim)
    if (fits(dim)) return dim;
  return -1;
}

/// Adds `low` and `high` elements at the ends of a dimension with the contents `fill` (see
/// outside). On every device, they are outside of the tensor. `exact`: if false, some knowledge may
/// be lost.
constexpr bool pad(view& v, int d, std::int64_t size, std::int64_t low, std::int64_t high, int fill,
                   const shape& tensor, bool exact) {
  digit* only = only_digit(v, d);
  if (only == nullptr && size == 1 && !v.has(d)) {  // its only element belongs to any dimension
    const int dim = dimension_of_one(v, d);
    if (dim < 0 || v.count == max_digits) return false;
    only = &v.digits[v.count++];
    *only = {static_cast<std::int16_t>(d), static_cast<std::int16_t>(dim), 1, 1};
  }
  if (only == nullptr || only->dim < 0) return false;
  const int at = only->dim;
  const std::int64_t extent = tensor.extents[at], step = only->stride;
  if (fill == outside::unknown && counts_positions(tensor, at)) return false;
  // Other owners that reach this far must have the same padding.
  if (v.reaches_beyond(at, extent) && v.beyond[at] != fill) return false;
  const std::int64_t own = (only->extent - 1) * step;
  std::int64_t least = 0, greatest = 0;  // of the first position, on all devices
  v.range(at, least, greatest);
  (step > 0 ? greatest : least) -= own;
  const auto outside_of = [&](std::int64_t from, bool below) {
    return below ? greatest + from < 0 : least + from >= extent;
  };
  if (low > 0 && !outside_of(-step, step > 0)) return false;
  if (high > 0 && !outside_of(own + step, step < 0)) return false;
  // (Repeated padding and slicing can extend a view beyond any tensor.)
  const std::int64_t most = outside::farthest / (step < 0 ? -step : step);
  if (low > most || high > most || only->extent > most || v.start[at] > outside::farthest ||
      v.start[at] < -outside::farthest)
    return false;
  v.start[at] -= low * step;
  only->extent += low + high;
  return v.fill_beyond(at, fill, tensor) || !exact;
}

/// True if a view shows positions modulo the extent along a dimension.
constexpr bool goes_around(const view& v, int dim, const shape& tensor) {
  return v.beyond[dim] == outside::wraps || !v.reaches_beyond(dim, tensor.extents[dim]);
}

/// True if a view shows only elements of its tensor.
constexpr bool sees_inside(const view& v, const shape& tensor) {
  for (int d = 0; d < v.dims; ++d)
    if (!goes_around(v, d, tensor)) return false;
  return true;
}

/// Appends the next one of consecutive shards of a tensor along a dimension to `v`. `joined` and
/// `more` are the numbers of elements of both.
constexpr bool append(view& v, const view& next, int d, std::int64_t joined, std::int64_t more,
                      const shape& tensor, bool exact) {
  if (v.rank != next.rank || v.dims != next.dims) return false;
  int at = -1;
  for (int each = 0; each < v.dims; ++each) {
    if (v.start[each] == next.start[each]) continue;
    if (at >= 0) return false;
    at = each;
  }
  if (at < 0) return v == next && !v.has(d);  // one element that repeats
  // The distance from this one to the next one, modulo the extent if it wraps around.
  const digit* const known = joined > 1 ? only_digit(v, d) : only_digit(next, d);
  std::int64_t step = next.start[at] - v.start[at], around = 0;
  if (known != nullptr && known->dim == at) {
    around = step - known->stride * joined;
    step = known->stride;
    if (around != 0 && (tensor.extents[at] == 0 || around % tensor.extents[at] != 0 ||
                        !goes_around(v, at, tensor) || !goes_around(next, at, tensor)))
      return false;
  } else if (joined > 1) {
    return false;
  }
  // Both must be equal without the digit of the dimension.
  view r(v.rank, v.dims);
  int mine = 0, theirs = 0;
  const auto skip = [&](const view& of, int& i, std::int64_t n) {
    int begin = 0;
    const int end = of.find(d, begin);
    if (i != begin || begin == end) return n == 1 || begin != end;
    i = end;
    return end == begin + 1 && of.digits[begin].dim == at && of.digits[begin].stride == step &&
           of.digits[begin].extent == n;
  };
  bool added = false;
  for (;;) {
    if (!skip(v, mine, joined) || !skip(next, theirs, more)) return false;
    const bool end = mine == v.count;
    if (end != (theirs == next.count)) return false;
    if (!added && (end || v.digits[mine].owner > d || v.digits[mine].owner < 0)) {
      r.add(d, at, joined + more, step);
      added = true;
    }
    if (end) break;
    if (v.digits[mine] != next.digits[theirs]) return false;
    r.add(v.digits[mine].owner, v.digits[mine]);
    ++mine;
    ++theirs;
  }
  for (int each = 0; each < v.dims; ++each) {
    r.start[each] = v.start[each];
    const bool a = v.reaches_beyond(each, tensor.extents[each]);
    const bool b = next.reaches_beyond(each, tensor.extents[each]);
    const bool differ = a && b && v.beyond[each] != next.beyond[each];
    if (differ && exact) return false;
    r.beyond[each] = differ ? outside::unknown : a ? v.beyond[each] : next.beyond[each];
  }
  if (around != 0) r.beyond[at] = outside::wraps;
  v = r;
  return v.good();
}

}  // namespace partita::prove_detail
