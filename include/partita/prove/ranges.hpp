/// Ranges: the range of an integer where flags hold, and the range of its values.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/terms.hpp>

namespace partita::prove_detail {

/// An integer: a tensor's element, minus the start of a shard, or only a position; plus a number.
///
/// Terms of indices and of the starts of shards have one more dimension, for the starts: see
/// starts.hpp.
/// Numbers and positions are below `most`, and there is at most one of each. Their sum with a
/// tensor whose elements are also below `most` is thus far from overflow. If that is not known of
/// the tensor, the result may be another number, but none below `most`.
struct offset {
  static constexpr std::int64_t most = meanings::most_i32_position;
  operand_term of;        ///< the tensor, by element or as a scalar; term -1: none
  int tensor_sign = 0;    ///< factor of the tensor
  int position_sign = 0;  ///< factor of the position
  bool is_sum = false;
  std::int64_t number = 0;
  operand_term computed;  ///< the sum that contains the tensor, if it may overflow; term -1: none

  /// True if both have the same tensor and position.
  constexpr bool same(const offset& other) const {
    return of == other.of && tensor_sign == other.tensor_sign &&
           position_sign == other.position_sign;
  }
};

/// True if sums of a few numbers below offset::most do not overflow, and may be negative.
constexpr bool is_far_from_overflow(dtype t) { return t == dtype::i32 || t == dtype::i64; }

/// The tensor that a term repeats for all starts, or -1.
constexpr int repeated_for_starts(const meanings& all, int t) {
  const term& of = all.terms[t];
  return of.by_element && all.terms.is(t, def<op::broadcast_in_dim>) ? all.terms.operand(of, 0).term
                                                                     : -1;
}

/// True if all elements of a term are below offset::most.
constexpr bool is_small(const meanings& all, const operand_term& x);

constexpr bool add_parts(const meanings& all, const operand_term& x, int sign, offset& sum) {
  std::int64_t number = 0;
  if (x.view != operand_term::by_element && all.is_number(x, number)) {
    if (number < 0 && all.terms[x.term].element == dtype::u64) return false;  // 2^63 and more
    sum.number += sign * number;
    return sum.number < offset::most && sum.number > -offset::most;
  }
  const term& of = all.terms[x.term];
  const int repeated = repeated_for_starts(all, x.term);
  if (x.view == operand_term::by_element &&
      (all.terms.is_positions(x.term) || (repeated >= 0 && all.terms.is_positions(repeated)))) {
    sum.position_sign += sign;
    return sum.position_sign * sum.position_sign <= 1;
  }
  const bool adds = all.terms.is(x.term, def<op::add>);
  if (x.view == operand_term::by_element && of.by_element &&
      (adds || all.terms.is(x.term, def<op::subtract>))) {
    sum.is_sum = true;
    for (int i = 0; i < of.operand_count; ++i)
      if (!add_parts(all, all.terms.operand(of, i), i == 0 || adds ? sign : -sign, sum))
        return false;
    return true;
  }
  if (sum.of.term >= 0) return false;
  sum.of = {repeated >= 0 ? repeated : x.term, x.view};
  sum.tensor_sign = sign;
  return true;
}

constexpr bool add_offset(const meanings& all, const operand_term& x, int sign, offset& sum) {
  const bool first = sum.of.term < 0, sums = sum.is_sum;
  sum.is_sum = false;
  if (!add_parts(all, x, sign, sum)) return false;
  if (first && sum.is_sum && sum.of.term >= 0 && !is_small(all, sum.of)) sum.computed = x;
  sum.is_sum = sum.is_sum || sums;
  return true;
}

/// Numbers from `low` on and below `high`.
struct range {
  std::int64_t low = -max_elements, high = max_elements;

  friend constexpr bool operator==(const range&, const range&) = default;
  constexpr bool contains(const range& other) const {
    return low <= other.low && other.high <= high;
  }
  constexpr bool has_both_ends() const { return low > -offset::most && high < offset::most; }
};

constexpr ops::direction turned(ops::direction d) {
  constexpr ops::direction other[] = {ops::direction::eq, ops::direction::ne, ops::direction::gt,
                                      ops::direction::ge, ops::direction::lt, ops::direction::le};
  return other[static_cast<int>(d)];
}
constexpr ops::direction negated(ops::direction d) {
  constexpr ops::direction other[] = {ops::direction::ne, ops::direction::eq, ops::direction::ge,
                                      ops::direction::gt, ops::direction::le, ops::direction::lt};
  return other[static_cast<int>(d)];
}

/// Finds the range in which an integer is exactly where flags hold (or where they do not).
///
/// `x`: the integer of all comparisons, without its number. (If the range has both ends, no
/// overflowed number is in it.)
constexpr bool truth_range(const meanings& all, int t, bool hold, offset& x, range& found) {
  const term& of = all.terms[t];
  if (!of.at.made() || !of.by_element) return false;
  const operand_term first = all.terms.operand(of, 0);
  if (all.terms.is(t, def<op::logical_not>))
    return first.view == operand_term::by_element && truth_range(all, first.term, !hold, x, found);
  if (all.terms.is(t, hold ? def<op::logical_and> : def<op::logical_or>)) {
    found = {};
    for (int i = 0; i < of.operand_count; ++i) {
      const operand_term each = all.terms.operand(of, i);
      range more;
      offset y;
      if (each.view != operand_term::by_element || !truth_range(all, each.term, hold, y, more) ||
          (i > 0 && (!y.same(x) || y.computed != x.computed)))
        return false;
      x = y;
      found.low = more.low > found.low ? more.low : found.low;
      found.high = more.high < found.high ? more.high : found.high;
    }
    if (found.has_both_ends()) x.computed = {};
    return true;
  }
  x = {};
  found = {};
  if (!all.terms.is(t, def<op::compare>) || !is_integer(all.terms[first.term].element) ||
      !add_offset(all, first, 1, x) || !add_offset(all, all.terms.operand(of, 1), -1, x) ||
      (x.tensor_sign == 0 ? x.is_sum || x.position_sign == 0
                          : !is_far_from_overflow(all.terms[first.term].element)))
    return false;
  auto is = static_cast<ops::direction>(all.terms.attrs(t)[0]);
  std::int64_t bound = -x.number;
  if (x.tensor_sign < 0 || (x.tensor_sign == 0 && x.position_sign < 0)) {
    x.tensor_sign = -x.tensor_sign;
    x.position_sign = -x.position_sign;
    bound = -bound;
    is = turned(is);
  }
  x.number = 0;
  switch (hold ? is : negated(is)) {
    case ops::direction::lt:
      found.high = bound;
      return true;
    case ops::direction::le:
      found.high = bound + 1;
      return true;
    case ops::direction::ge:
      found.low = bound;
      return true;
    case ops::direction::gt:
      found.low = bound + 1;
      return true;
    case ops::direction::eq:
      found = {bound, bound + 1};
      x.computed = {};
      return true;
    default:
      return false;
  }
}

/// The other operand of a binary op with a number.
constexpr bool with_number(const meanings& all, const operand_term& x, const op_def& d,
                           operand_term& other, std::int64_t& number) {
  const term& of = all.terms[x.term];
  if (!of.by_element || !all.terms.is(x.term, d) || of.operand_count != 2) return false;
  for (int i = 0; i < 2; ++i) {
    const operand_term each = all.terms.operand(of, i);
    if (each.view == operand_term::by_element || !all.is_number(each, number)) continue;
    other = all.terms.operand(of, 1 - i);
    return true;
  }
  return false;
}

/// Finds x in max(min(x, last), 0) or, for natural numbers, min(x, last); see element_form.
constexpr bool is_clamped(const meanings& all, const operand_term& of, operand_term& x,
                          std::int64_t& last) {
  std::int64_t first = 0;
  operand_term inner;
  if (is_unsigned(all.terms[of.term].element) && with_number(all, of, def<op::minimum>, x, last)) {
    if (with_number(all, x, def<op::maximum>, inner, first) && first == 0) x = inner;
    return last >= 0;
  }
  return with_number(all, of, def<op::maximum>, inner, first) && first == 0 &&
         with_number(all, inner, def<op::minimum>, x, last) && last >= 0;
}

}  // namespace partita::prove_detail
