/// Exchanges between devices that need several collectives.
#pragma once

#include <partita/stablehlo/device_groups.hpp>

namespace partita::stablehlo_detail {

/// all_to_all among groups along these axes. If one dimension is both split and concatenated, the
/// block for each device becomes a separate dimension.
constexpr value_id exchanged(op_context& c, value_id x, const axis_list& axes, int split,
                             int joined) {
  if (c.failed()) return -1;
  const tensor_type t = c.b.type(x);
  if (split >= t.shape.rank || joined >= t.shape.rank) {
    c.fail("H005", "dimensions ", split, " and ", joined, " of ", t);
    return -1;
  }
  if (axes.count == 0) return x;
  collective what = of_kind(collective::all_to_all, along(axes, split));
  what.gathered = joined;
  what.sliced = split;
  if (split != joined) return give_collective(c, what, x);
  const std::int64_t n = what.members(*c.local_mesh);
  if (t.shape.rank + 2 > max_rank || t.shape[split] % n != 0) {
    c.fail("H007", t, " is divided among ", n, " devices along dimension ", split,
           ", which is not possible");
    return -1;
  }
  shape pieces;
  for (int d = 0; d < t.shape.rank; ++d) {
    if (d == split) {
      pieces.push_back(n);
      pieces.push_back(1);
    }
    pieces.push_back(d == split ? t.shape[d] / n : t.shape[d]);
  }
  what.gathered = split + 1;
  const value_id sent = give_collective(c, what, ops::reshape(c.b, x, pieces));
  return c.failed() ? -1 : ops::reshape(c.b, sent, t.shape);
}

/// The number of this device along some axes.
constexpr value_id position_along(op_context& c, const axis_list& axes, dtype t) {
  if (axes.count == 0) return c.b.scalar(def<op::constant>, t, 0);
  return append_shard_start(c.b.p, 1, axes, t);
}
/// Sends from device to device along these (from, to) pairs; a device that receives nothing gets 0.
///
/// Each difference of device numbers is a ring around the entire mesh; the receivers of these pairs
/// select its result.
///
/// Cost      a permute for each difference of numbers
/// Errors    H013 more than 64 differences
constexpr value_id permuted(op_context& c, value_id x, const vec<std::int64_t>& pairs) {
  if (c.failed()) return -1;
  builder& b = c.b;
  const mesh& m = *c.local_mesh;
  const std::int64_t n = m.devices();
  axis_list all;
  for (int i = 0; i < m.rank; ++i) all.push_back(m.order[i]);
  const auto step_of = [&](std::size_t i) { return (pairs[i + 1] - pairs[i] + n) % n; };
  vec<char> is_step(static_cast<std::size_t>(n), 0);
  int steps = 0;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    char& known = is_step[static_cast<std::size_t>(step_of(i))];
    steps += known == 0 ? 1 : 0;
    known = 1;
  }
  if (constexpr int most = 64; steps > most) {
    c.fail("H013", "its ", pairs.size() / 2, " pairs have ", steps, " different distances; up to ",
           most, " are supported");
    return -1;
  }
  const value_id device = position_along(c, all, dtype::i32);
  const tensor_type t = b.type(x);
  value_id made = ops::constant(b, t, 0);
  for (std::int64_t step = 0; step < n; ++step) {
    if (is_step[static_cast<std::size_t>(step)] == 0 || c.failed()) continue;
    vec<std::int64_t> gets(static_cast<std::size_t>(n), 0);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      if (step_of(i) == step) gets[static_cast<std::size_t>(pairs[i + 1])] = 1;
    }
    collective ring = of_kind(collective::permute, along(all, no_dim));
    ring.map = {device_map::ring, 2 * step > n ? step - n : step};
    const value_id sent = step == 0 ? x : give_collective(c, ring, x);
    const value_id table = ops::literal(b, {dtype::boolean, {n}}, as_ints(gets));
    const std::int64_t one[] = {1};
    const value_id flag = ops::reshape(b, ops::dynamic_slice(b, table, {&device, 1}, one), {});
    if (!c.failed()) made = ops::select(b, flag, sent, made);
  }
  return made;
}

/// Each member of a group gets the value of the first member.
constexpr void read_collective_broadcast(op_context& c) {
  const axis_list axes = axes_of_groups(c, true);
  for (const value_id x : c.operands) {
    if (c.failed()) return;
    const shape s = c.b.type(x).shape;
    if (axes.count == 0) {
      c.give(x);
      continue;
    }
    if (s.rank == max_rank)
      return c.fail("H013", "operand of type ", c.b.type(x), "; ranks below ", max_rank,
                    " are supported");
    shape longer{1};
    vec<std::int64_t> start(static_cast<std::size_t>(s.rank) + 1, 0), limit{1};
    for (const auto extent : s) {
      longer.push_back(extent);
      limit.push_back(extent);
    }
    const value_id pieces = give_collective(c, of_kind(collective::all_gather, along(axes, 0)),
                                            ops::reshape(c.b, x, longer));
    if (c.failed()) return;
    c.give(ops::reshape(c.b, ops::slice(c.b, pieces, as_ints(start), as_ints(limit)), s));
  }
}

/// Sends rows of an operand to each device: `send_sizes` rows starting at `input_offsets`, written
/// at `output_offsets` there. Rows that no device sends keep their values of the second operand.
///
/// Cost      each device receives all rows of its group
/// Source    jax.lax.ragged_all_to_all
constexpr void read_ragged_all_to_all(op_context& c) {
  using enum ops::direction;
  if (!c.count(6)) return;
  builder& b = c.b;
  const axis_list axes = axes_of_groups(c, true);
  if (c.failed()) return;
  const tensor_type from = c.type(0), to = c.type(1), list = c.type(2);
  if (from.shape.rank == 0 || to.shape.rank != from.shape.rank || from.element != to.element)
    return c.fail("H007", "operands of types ", from, " and ", to, "; rows of one type are needed");
  const std::int64_t members =
      of_kind(collective::all_gather, along(axes, 0)).members(*c.local_mesh);
  for (std::size_t i = 2; i < 6; ++i)
    if (c.type(i) != list || list.shape.rank != 1 || !is_integer(list.element) ||
        list.shape[0] % members != 0)
      return c.fail("H007", "operand ", i, " is ", c.type(i), "; a list of integers for each of ",
                    members, " devices is needed");
  // The entry for this device of each member of the group.
  const auto said = [&](std::size_t i) {
    return ops::convert(b, exchanged(c, c.x(i), axes, 0, 0), dtype::i64);
  };
  const value_id first = said(2), size = said(3), place = said(4);
  const value_id rows =
      axes.count == 0 ? c.x(0)
                      : give_collective(c, of_kind(collective::all_gather, along(axes, 0)), c.x(0));
  if (c.failed()) return;
  const shape line{to.shape[0]};
  const value_id row = ops::iota(b, {dtype::i64, line}, 0);
  const auto number = [&](std::int64_t v) { return ops::integer(b, dtype::i64, v); };
  value_id source = ops::broadcast_in_dim(b, number(-1), line, {});
  const std::int64_t each = list.shape[0] / members;
  for (std::int64_t k = 0; k < list.shape[0] && !c.failed(); ++k) {
    const auto of = [&](value_id v) {
      const std::int64_t begin[] = {k}, end[] = {k + 1};
      return ops::reshape(b, ops::slice(b, v, begin, end), {});
    };
    const value_id distance = ops::subtract(b, row, of(place));
    const value_id sent = ops::logical_and(b, ops::compare(b, ge, distance, number(0)),
                                           ops::compare(b, lt, distance, of(size)));
    const value_id begin = ops::add(b, of(first), number(k / each * from.shape[0]));
    source = ops::select(b, sent, ops::add(b, distance, begin), source);
  }
  const value_id taken = ops::gather(b, rows, ops::maximum(b, source, number(0)));
  const std::int64_t along_rows[] = {0};
  const value_id is_sent =
      ops::broadcast_in_dim(b, ops::compare(b, ge, source, number(0)), to.shape, along_rows);
  c.give(ops::select(b, is_sent, taken, c.x(1)));
}

}  // namespace partita::stablehlo_detail
