/// Reduction by halves: combines x0 x1, x2 x3, ... until one element remains.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op_detail {

/// Slices [begin : end : stride] of dimension d, and everything of the other dimensions.
constexpr value_id cut(builder& b, value_id x, int d, std::int64_t begin, std::int64_t end,
                       std::int64_t stride = 1) {
  if (x < 0) return -1;
  const shape from = b.type(x).shape;
  std::int64_t start[max_rank] = {}, limit[max_rank] = {}, strides[max_rank] = {};
  for (int i = 0; i < from.rank; ++i) limit[i] = from[i], strides[i] = 1;
  start[d] = begin, limit[d] = end, strides[d] = stride;
  const auto rank = static_cast<std::size_t>(from.rank);
  return ops::slice(b, x, {start, rank}, {limit, rank}, {strides, rank});
}
constexpr vec<value_id> cut(builder& b, const vec<value_id>& xs, int d, std::int64_t begin,
                            std::int64_t end, std::int64_t stride = 1) {
  vec<value_id> made;
  for (value_id x : xs) made.push_back(cut(b, x, d, begin, end, stride));
  return made;
}

/// Combines tensors of one shape along a dimension until its extent is 1 (0 stays 0).
/// `combine(left, right)` receives the earlier and the later elements and returns the same number
/// of tensors. If it returns -1, halve stops.
///
/// Cost: log2(extent) calls
template <class Combine>
constexpr void halve(builder& b, vec<value_id>& xs, int d, const Combine& combine) {
  while (!b.failed() && b.type(xs[0]).shape[d] > 1) {
    const std::int64_t count = b.type(xs[0]).shape[d], even = count / 2 * 2;
    vec<value_id> made = combine(cut(b, xs, d, 0, even, 2), cut(b, xs, d, 1, even, 2));
    for (value_id v : made)
      if (v < 0) return;
    for (std::size_t i = 0; even < count && i < made.size(); ++i) {
      const value_id parts[] = {made[i], cut(b, xs[i], d, even, count)};
      made[i] = ops::concatenate(b, parts, d);
    }
    xs = made;
  }
}

}  // namespace partita::op_detail
