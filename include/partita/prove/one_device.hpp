/// Values of one device: if the other devices have the identity, their combination is the value of
/// that device.
#pragma once

#include <cstdint>

#include <partita/prove/claims.hpp>
#include <partita/prove/numbers.hpp>
#include <partita/prove/positions.hpp>
#include <partita/prove/starts.hpp>

namespace partita::prove_detail {

/// A device, by its coordinates along some axes.
struct one_device {
  std::uint32_t axes = 0;
  std::int64_t at[max_axes] = {};
};
/// Finds the only device for which a flag that depends on coordinates holds. False if no device or
/// several do.
constexpr bool find_device(const workspace& w, const claim& flag, bool holds, one_device& found) {
  constexpr std::int64_t most = 4096;
  const view& v = w.all.views[flag.view];
  std::int64_t all = 1, count = 0;
  for (int i = 0; i < v.count; ++i) {
    const digit& each = v.digits[i];
    if (each.owner >= 0 || axis_of(each) >= w.mesh.rank || each.dim < 0) return false;
    found.axes |= 1u << axis_of(each);
    all = saturating_multiply(all, each.extent);
  }
  if (v.dims != 1 || v.count == 0 || all > most || !lies_inside(v, 0, w.all.terms[flag.term].shape))
    return false;
  position_function f(w.all, {flag.term});
  for (std::int64_t device = 0; device < all; ++device) {
    std::int64_t rest = device, at = v.start[0], value = 0;
    for (int i = 0; i < v.count; rest /= v.digits[i++].extent)
      at += rest % v.digits[i].extent * v.digits[i].stride;
    if (!f.at(at, value)) return false;
    if ((value != 0) != holds) continue;
    rest = device;
    for (int i = 0; i < v.count; rest /= v.digits[i++].extent)
      found.at[axis_of(v.digits[i])] = rest % v.digits[i].extent;
    ++count;
  }
  return count == 1;
}
/// Restricts a value to that device.
constexpr bool stay_on(workspace& w, const one_device& here, claim& x) {
  view v = w.all.views[x.view];
  view r = v;
  r.count = 0;
  for (int i = 0; i < v.count; ++i) {
    const digit& each = v.digits[i];
    const int axis = each.owner < 0 ? axis_of(each) : 0;
    if (each.owner >= 0 || (here.axes >> axis & 1u) == 0)
      r.add(each.owner, each);
    else if (each.dim >= 0)
      r.start[each.dim] += here.at[axis] * each.stride;
  }
  x.view = w.number(r, x.term);
  return r.good() && w.can_be_seen(r, x.term);
}
/// The combiner that has this identity; `stack` if none has.
constexpr combiner leaves_by(const workspace& w, const claim& c) {
  if (c.view == open_view) return combiner::stack;
  const bool flags = w.all.terms[c.term].element == dtype::boolean;
  const combiner numbers[] = {combiner::add, combiner::multiply},
                 truths[] = {combiner::logical_or, combiner::logical_and};
  for (combiner each : flags ? truths : numbers)
    if (w.is_identity(c, each)) return each;
  return !flags && is_nothing(w, c) ? combiner::add : combiner::stack;
}
/// Records that the result is one of the operands, or a scalar everywhere.
constexpr void add_spread(workspace& w, const program& p, op_id o, claim c, claim_list& to) {
  const value_id result = p.op(o).result;
  if (c.view != open_view)
    c.view = w.number(spread(w.all.views[c.view], p.type(result).shape.rank), c.term);
  w.add(to, result, c);
}
/// Handles a select between a value on one device and zeros (or ones) on the others: the value is a
/// pending sum (or product).
constexpr void of_one_device(workspace& w, const program& p, op_id o, claim_list& to) {
  if (p.op(o).def->id != def<op::select>.id || w.some_open) return;
  const claim& flag = w.chosen[0];
  for (int side = 1; side < 3; ++side) {
    claim x = w.chosen[side];
    const combiner combine = leaves_by(w, w.chosen[3 - side]);
    one_device here;
    if (flag.sums.any() || combine == combiner::stack ||
        (x.scale != 1 && combine != combiner::add) || !find_device(w, flag, side == 1, here) ||
        !stay_on(w, here, x))
      continue;
    pending sums = x.sums;
    if (!sums.add(here.axes, combine)) continue;
    return add_spread(w, p, o, {x.term, x.view, sums, x.scale}, to);
  }
}

}  // namespace partita::prove_detail
