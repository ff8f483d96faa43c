/// Decompositions of ops that StableHLO lacks, into ops that it has.
#pragma once

#include <partita/op/combine.hpp>
#include <partita/op/registry.hpp>

namespace partita::stablehlo_detail {

/// Builds a program with the operands of op `o` as inputs; `make(b, inputs)` returns its outputs.
template <class Make>
constexpr program program_like(const program& p, op_id o, const Make& make) {
  builder b;
  vec<value_id> inputs;
  for (value_id v : p.operands(o)) inputs.push_back(ops::parameter(b, "", p.type(v)));
  const vec<value_id> results = make(b, inputs);
  for (value_id v : results) b.p.outputs.push_back({v, {}});
  return static_cast<program&&>(b.p);
}

/// Swaps the two ends of `x`: the last `shift` elements come first.
constexpr value_id as_slices(builder& b, value_id x, int dim, std::int64_t shift) {
  const shape from = b.type(x).shape;
  const std::int64_t n = from[dim], at = n == 0 ? 0 : n - op::roll::places(shift, n);
  if (n == 0 || at == n) return x;
  const auto rank = static_cast<std::size_t>(from.rank);
  value_id parts[2] = {};
  for (int i = 0; i < 2; ++i) {
    std::int64_t start[max_rank] = {}, limit[max_rank] = {};
    for (int d = 0; d < from.rank; ++d) limit[d] = from[d];
    (i == 0 ? start : limit)[dim] = at;
    parts[i] = ops::slice(b, x, {start, rank}, {limit, rank});
  }
  const std::int64_t attrs[] = {dim};
  return b.emit(def<op::concatenate>, parts, attrs);  // (ops::concatenate makes it a roll)
}

/// A cumulative sum as a reduction over windows that reach from each element to the first (or the
/// last) one. If the sum excludes the element itself, the elements are first shifted by one
/// position.
constexpr value_id as_windows(builder& b, value_id x, const op::cumsum&,
                              span<const std::int64_t> attrs) {
  const shape from = b.type(x).shape;
  const int dim = static_cast<int>(attrs[0]);
  const bool reverse = attrs[1] != 0, exclusive = attrs[2] != 0;
  if (from.elements() == 0) return x;
  const auto rank = static_cast<std::size_t>(from.rank);
  const combiner combine = op::cumsum::combiner_of(attrs);
  if (exclusive) {
    std::int64_t low[max_rank] = {}, high[max_rank] = {};
    low[dim] = reverse ? -1 : 1;
    high[dim] = reverse ? 1 : -1;
    const dtype t = b.type(x).element;
    const value_id nothing = b.scalar(def<op::constant>, t, identity_bits(combine, t));
    x = ops::pad(b, x, nothing, {low, rank}, {high, rank});
  }
  const std::int64_t inclusive[] = {dim, reverse, 0};
  return ops::reduce_window(b, x, combine, op::cumsum::windows_of(from, inclusive).all());
}

/// The first k elements of each line, sorted by value (in total order) and then by position.
constexpr vec<value_id> as_sorted(builder& b, value_id values, value_id positions, std::int64_t k) {
  const op::sorted_pairs sorted(b, values, positions);
  if (b.failed()) return {};
  const shape from = b.type(values).shape;
  std::int64_t start[max_rank] = {}, limit[max_rank] = {};
  for (int d = 0; d < from.rank; ++d) limit[d] = d + 1 < from.rank ? from[d] : k;
  const auto rank = static_cast<std::size_t>(from.rank);
  vec<value_id> made;
  for (const value_id v : {sorted.values, sorted.positions})
    made.push_back(ops::slice(b, v, {start, rank}, {limit, rank}));
  return made;
}

/// Threefry-2x32 with 20 rounds; see op/random.hpp.
constexpr value_id as_rounds(builder& b, value_id key, value_id counter, const shape& to) {
  constexpr int rotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
  const auto number = [&](std::int64_t v) { return ops::integer(b, dtype::u32, v); };
  const auto in_full = [&](value_id v) {
    return b.type(v).shape.rank == to.rank ? v : ops::broadcast_in_dim(b, v, to, {});
  };
  const auto words = [&](value_id v, value_id(&w)[2]) {
    const value_id bits = ops::convert(b, in_full(v), dtype::u64);
    const value_id high = ops::shift_right_logical(b, bits, ops::integer(b, dtype::u64, 32));
    const value_id low = ops::logical_and(b, bits, ops::integer(b, dtype::u64, 0xffffffff));
    w[0] = ops::convert(b, high, dtype::u32);
    w[1] = ops::convert(b, low, dtype::u32);
  };
  value_id given[2] = {}, x[2] = {};
  words(key, given);
  words(counter, x);
  const value_id keys[] = {
      given[0], given[1],
      ops::logical_xor(b, ops::logical_xor(b, given[0], given[1]), number(0x1bd11bda))};
  x[0] = ops::add(b, x[0], keys[0]);
  x[1] = ops::add(b, x[1], keys[1]);
  for (int round = 0; round < 20; ++round) {
    const int turn = rotations[round % 8];
    x[0] = ops::add(b, x[0], x[1]);
    const value_id turned = ops::logical_or(b, ops::shift_left(b, x[1], number(turn)),
                                            ops::shift_right_logical(b, x[1], number(32 - turn)));
    x[1] = ops::logical_xor(b, turned, x[0]);
    if (round % 4 != 3) continue;
    const int step = round / 4 + 1;
    x[0] = ops::add(b, x[0], keys[step % 3]);
    x[1] = ops::add(b, x[1], ops::add(b, keys[(step + 1) % 3], number(step)));
  }
  const value_id high =
      ops::shift_left(b, ops::convert(b, x[0], dtype::u64), ops::integer(b, dtype::u64, 32));
  return ops::convert(b, ops::logical_or(b, high, ops::convert(b, x[1], dtype::u64)), dtype::i64);
}

/// A tensor filled with the identity of the combiner.
constexpr value_id identities(builder& b, combiner c, const tensor_type& t) {
  return b.emit(def<op::constant>, {}, {identity_bits(c, t.element)}, t);
}

}  // namespace partita::stablehlo_detail
