/// Ranges: between which numbers integers lie where flags hold, and which numbers they can be.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/claims.hpp>

namespace partita::prove_detail {

/// An integer: a tensor's, less a start of a piece, or only a position, and a number more.
///
/// Terms of indices and of the starts of pieces have one more dimension, for the starts: see
/// starts.hpp.
///
/// Numbers, positions and tensors that are known to be indices are below `most`, and there is at
/// most one of each: so sums of them are far from overflow.
struct offset {
  static constexpr std::int64_t most = std::int64_t{1} << 28;
  operand_term of;        ///< the tensor, by element or a scalar; term -1: none
  int tensor_sign = 0;    ///< how often the tensor is in it
  int position_sign = 0;  ///< how often the position
  bool is_sum = false;
  std::int64_t number = 0;

  /// Of the same tensor and position?
  constexpr bool same(const offset& other) const {
    return of == other.of && tensor_sign == other.tensor_sign &&
           position_sign == other.position_sign;
  }
};

/// May sums of a few numbers below offset::most be taken, and be negative?
constexpr bool is_far_from_overflow(dtype t) { return t == dtype::i32 || t == dtype::i64; }

/// The tensor that a term repeats for all starts, or -1.
constexpr int repeated_for_starts(const workspace& w, int t) {
  const term& of = w.all.terms[t];
  return of.by_element && w.all.terms.is(t, def<op::broadcast_in_dim>)
             ? w.all.terms.operand(of, 0).term
             : -1;
}

constexpr bool add_offset(const workspace& w, const operand_term& x, int sign, offset& sum) {
  std::int64_t number = 0;
  if (x.view != operand_term::by_element && w.all.is_number(x, number)) {
    sum.number += sign * number;
    return sum.number < offset::most && sum.number > -offset::most;
  }
  const term& of = w.all.terms[x.term];
  const int repeated = repeated_for_starts(w, x.term);
  if (x.view == operand_term::by_element &&
      (w.all.terms.is_positions(x.term) || (repeated >= 0 && w.all.terms.is_positions(repeated)))) {
    sum.position_sign += sign;
    return sum.position_sign * sum.position_sign <= 1;
  }
  const bool adds = w.all.terms.is(x.term, def<op::add>);
  if (x.view == operand_term::by_element && of.by_element &&
      (adds || w.all.terms.is(x.term, def<op::subtract>))) {
    sum.is_sum = true;
    for (int i = 0; i < of.operand_count; ++i)
      if (!add_offset(w, w.all.terms.operand(of, i), i == 0 || adds ? sign : -sign, sum))
        return false;
    return true;
  }
  if (sum.of.term >= 0) return false;
  sum.of = {repeated >= 0 ? repeated : x.term, x.view};
  sum.tensor_sign = sign;
  return true;
}

/// Numbers from `low` on and below `high`.
struct range {
  std::int64_t low = -max_elements, high = max_elements;

  friend constexpr bool operator==(const range&, const range&) = default;
  constexpr bool contains(const range& other) const {
    return low <= other.low && other.high <= high;
  }
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

/// In which range does an integer lie exactly where flags hold (or where they do not)?
///
/// `x`: the integer, that all comparisons are of, without its number.
constexpr bool truth_range(const workspace& w, int t, bool hold, offset& x, range& found) {
  const term& of = w.all.terms[t];
  if (!of.at.made() || !of.by_element) return false;
  const operand_term first = w.all.terms.operand(of, 0);
  if (w.all.terms.is(t, def<op::logical_not>))
    return first.view == operand_term::by_element && truth_range(w, first.term, !hold, x, found);
  if (w.all.terms.is(t, hold ? def<op::logical_and> : def<op::logical_or>)) {
    found = {};
    for (int i = 0; i < of.operand_count; ++i) {
      const operand_term each = w.all.terms.operand(of, i);
      range more;
      offset y;
      if (each.view != operand_term::by_element || !truth_range(w, each.term, hold, y, more) ||
          (i > 0 && !y.same(x)))
        return false;
      x = y;
      found.low = more.low > found.low ? more.low : found.low;
      found.high = more.high < found.high ? more.high : found.high;
    }
    return true;
  }
  x = {};
  found = {};
  if (!w.all.terms.is(t, def<op::compare>) || !is_integer(w.all.terms[first.term].element) ||
      !add_offset(w, first, 1, x) || !add_offset(w, w.all.terms.operand(of, 1), -1, x) ||
      (x.tensor_sign == 0 ? x.is_sum || x.position_sign == 0
                          : !is_far_from_overflow(w.all.terms[first.term].element)))
    return false;
  auto is = static_cast<ops::direction>(w.all.terms.attrs(t)[0]);
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
      return true;
    default:
      return false;
  }
}

/// The other operand of an op of two, one of which is a number.
constexpr bool with_number(const workspace& w, const operand_term& x, const op_def& d,
                           operand_term& other, std::int64_t& number) {
  const term& of = w.all.terms[x.term];
  if (!of.by_element || !w.all.terms.is(x.term, d) || of.operand_count != 2) return false;
  for (int i = 0; i < 2; ++i) {
    const operand_term each = w.all.terms.operand(of, i);
    if (each.view == operand_term::by_element || !w.all.is_number(each, number)) continue;
    other = w.all.terms.operand(of, 1 - i);
    return true;
  }
  return false;
}

/// max(min(x, last), 0): what is clamped so, see element_form.
constexpr bool is_clamped(const workspace& w, const operand_term& of, operand_term& x,
                          std::int64_t& last) {
  std::int64_t first = 0;
  operand_term inner;
  return with_number(w, of, def<op::maximum>, inner, first) && first == 0 &&
         with_number(w, inner, def<op::minimum>, x, last) && last >= 0;
}

}  // namespace partita::prove_detail
