/// Rewrites of common shift patterns (a slice of a pad, a concatenation of slices) into one op.
/// Along a sharded dimension, one exchange with neighbours then suffices.
#pragma once

#include <partita/op/arithmetic.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/pad.hpp>
#include <partita/op/roll.hpp>
#include <partita/op/select.hpp>
#include <partita/op/slice.hpp>

namespace partita::ops {

namespace op_detail {

/// A box of elements of a value, with stride 1 and known extents.
struct box {
  value_id of = -1;  ///< -1: not a box
  std::int64_t start[max_rank] = {}, limit[max_rank] = {};
  int rank = 0;

  constexpr box() = default;
  constexpr box(const builder& b, value_id x, ints from, ints to) {
    const shape s = b.type(x).shape;
    rank = s.rank;
    if (static_cast<int>(from.size()) != rank || static_cast<int>(to.size()) != rank) return;
    for (int d = 0; d < rank; ++d) {
      const auto i = static_cast<std::size_t>(d);
      start[d] = from[i];
      limit[d] = to[i] == whole ? s[d] : to[i];
      if (s[d] < 0 || start[d] < 0 || limit[d] < start[d] || limit[d] > s[d]) return;
    }
    of = x;
  }
  /// The box that a slice reads.
  constexpr box(const builder& b, value_id v) {
    const op_id o = b.p.producer(v);
    if (b.p.op(o).def->id != def<op::slice>.id) return;
    const value_id x = b.p.operand(o, 0);
    const auto attrs = b.p.attrs(o);
    const auto n = static_cast<std::size_t>(b.type(x).shape.rank);
    for (std::size_t i = 2 * n; i < attrs.size(); ++i)
      if (attrs[i] != 1) return;
    *this = box(b, x, {attrs.data(), n}, {attrs.data() + n, n});
  }
  constexpr bool takes_all(const builder& b, int d) const {
    return start[d] == 0 && limit[d] == b.type(of).shape[d];
  }
  constexpr bool takes_all_but(const builder& b, int dim) const {
    for (int d = 0; d < rank; ++d)
      if (d != dim && !takes_all(b, d)) return false;
    return true;
  }
};

/// Low, high and interior amounts of a pad, by dimension.
struct amounts {
  std::int64_t low[max_rank] = {}, high[max_rank] = {}, interior[max_rank] = {};
  int rank = 0;

  constexpr ints lows() const { return {low, static_cast<std::size_t>(rank)}; }
  constexpr ints highs() const { return {high, static_cast<std::size_t>(rank)}; }
  constexpr ints interiors() const { return {interior, static_cast<std::size_t>(rank)}; }
};

/// If `v` is a negation, replaces it by its operand and returns true.
constexpr bool strip_negation(const builder& b, value_id& v) {
  const op_id o = b.p.producer(v);
  if (b.p.op(o).def->id != def<op::negate>.id) return false;
  v = b.p.operand(o, 0);
  return true;
}

/// Negates x at the positions of dimension `dim` below `end`, or at the others.
constexpr value_id negated_part(builder& b, value_id x, int dim, std::int64_t end, bool below) {
  const tensor_type t = b.type(x);
  const tensor_type row{dtype::i64, {t.shape[dim]}}, signs{t.element, {t.shape[dim]}};
  const auto spread = [&](value_id v, const shape& s) { return broadcast_in_dim(b, v, s, {}); };
  const value_id inside =
      compare(b, direction::lt, iota(b, row, 0), spread(integer(b, dtype::i64, end), row.shape));
  const value_id minus = spread(scalar(b, t.element, -1), signs.shape),
                 plus = spread(scalar(b, t.element, 1), signs.shape);
  const value_id sign = below ? select(b, inside, minus, plus) : select(b, inside, plus, minus);
  const std::int64_t to[] = {dim};
  return multiply(b, x, broadcast_in_dim(b, sign, t.shape, to));
}

/// Returns the bits of the value that all elements have, if it is known.
constexpr bool same_everywhere(const builder& b, value_id v, std::int64_t& bits) {
  op_id o = b.p.producer(v);
  if (b.p.op(o).def->id == def<op::broadcast_in_dim>.id) o = b.p.producer(b.p.operand(o, 0));
  if (b.p.op(o).def->id != def<op::constant>.id) return false;
  bits = b.p.attrs(o)[0];
  return true;
}

}  // namespace op_detail

/// slice(pad(x)) => pad(x) with smaller, possibly negative, amounts. Returns -1 if x is not such a
/// pad.
constexpr value_id slice_of_pad(builder& b, value_id x, ints start, ints limit) {
  const op_id o = b.p.producer(x);
  const op_detail::box cut(b, x, start, limit);
  if (cut.of < 0 || b.p.op(o).def->id != def<op::pad>.id) return -1;
  const value_id from = b.p.operand(o, 0), value = b.p.operand(o, 1);
  const shape s = b.type(from).shape, padded = b.type(x).shape;
  const auto attrs = b.p.attrs(o);
  op_detail::amounts to;
  to.rank = s.rank;
  for (int d = 0; d < s.rank; ++d) {
    to.low[d] = attrs[d] - cut.start[d];
    to.high[d] = attrs[s.rank + d] - (padded[d] - cut.limit[d]);
    to.interior[d] = attrs[2 * s.rank + d];
    if (cut.takes_all(b, d)) continue;
    const bool elements_left =
        s[d] > 0 && s[d] + (to.low[d] < 0 ? to.low[d] : 0) + (to.high[d] < 0 ? to.high[d] : 0) > 0;
    if (to.interior[d] != 0 || !elements_left) return -1;
  }
  return pad(b, from, value, to.lows(), to.highs(), to.interiors());
}

/// pad(slice(x)) => pad(x), if each end is either cut or padded, not both. Returns -1 if x is not
/// such a slice.
constexpr value_id pad_of_slice(builder& b, value_id x, value_id value, ints low, ints high,
                                ints interior) {
  const op_detail::box cut(b, x);
  const auto rank = static_cast<std::size_t>(b.type(x).shape.rank);
  if (cut.of < 0 || low.size() != rank || high.size() != rank) return -1;
  op_detail::amounts to;
  to.rank = cut.rank;
  for (int d = 0; d < cut.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t before = cut.start[d], behind = b.type(cut.of).shape[d] - cut.limit[d];
    to.low[d] = low[i] - before;
    to.high[d] = high[i] - behind;
    to.interior[d] = i < interior.size() ? interior[i] : 0;
    const bool mixed = (before > 0 && low[i] > 0) || (behind > 0 && high[i] > 0);
    const bool empty = cut.start[d] == cut.limit[d];
    if (mixed || ((before > 0 || behind > 0) && (to.interior[d] != 0 || empty))) return -1;
  }
  return pad(b, cut.of, value, to.lows(), to.highs(), to.interiors());
}

/// concatenate(x[a:], x[:a]) => roll(x, -a). If one part is negated, multiplies the roll by -1
/// there. Returns -1 if the parts do not match.
constexpr value_id roll_of_slices(builder& b, span<const value_id> parts, int dim) {
  if (parts.size() != 2) return -1;
  value_id upper = parts[0], lower = parts[1];
  const bool minus_upper = op_detail::strip_negation(b, upper),
             minus_lower = op_detail::strip_negation(b, lower);
  const op_detail::box first(b, upper), second(b, lower);
  if (first.of < 0 || first.of != second.of || dim < 0 || dim >= first.rank ||
      !first.takes_all_but(b, dim) || !second.takes_all_but(b, dim))
    return -1;
  const std::int64_t n = b.type(first.of).shape[dim], a = first.start[dim];
  if (first.limit[dim] != n || second.start[dim] != 0 || second.limit[dim] != a) return -1;
  const bool some = minus_upper || minus_lower, all = minus_upper && minus_lower;
  if (some && !all && is_unsigned(b.type(first.of).element)) return -1;
  const value_id y = roll(b, first.of, dim, -a);
  if (!some) return y;
  return all ? negate(b, y) : op_detail::negated_part(b, y, dim, n - a, minus_upper);
}

/// concatenate(0, x, 0) => pad(x, 0), for parts at one or both ends that hold one constant. Returns
/// -1 if the parts do not match or the constants differ.
constexpr value_id pad_of_constants(builder& b, span<const value_id> parts, int dim) {
  if (parts.size() < 2 || parts.size() > 3) return -1;
  std::int64_t bits[2] = {};
  const bool before = op_detail::same_everywhere(b, parts[0], bits[0]),
             behind = op_detail::same_everywhere(b, parts[parts.size() - 1], bits[1]);
  if (before == behind ? !before || bits[0] != bits[1] || parts.size() == 2 : parts.size() == 3)
    return -1;
  const value_id x = parts[before ? 1 : 0];
  const tensor_type t = b.type(x);
  if (dim < 0 || dim >= t.shape.rank) return -1;
  op_detail::amounts to;
  to.rank = t.shape.rank;
  for (const value_id each : parts) {
    const tensor_type other = b.type(each);
    if (other.element != t.element || other.shape.rank != t.shape.rank) return -1;
    for (int d = 0; d < to.rank; ++d)
      if (other.shape[d] < 0 || (d != dim && other.shape[d] != t.shape[d])) return -1;
  }
  if (before) to.low[dim] = b.type(parts[0]).shape[dim];
  if (behind) to.high[dim] = b.type(parts[parts.size() - 1]).shape[dim];
  const value_id value = b.scalar(def<op::constant>, t.element, bits[before ? 0 : 1]);
  return pad(b, x, value, to.lows(), to.highs(), to.interiors());
}

}  // namespace partita::ops
