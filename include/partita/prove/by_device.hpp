/// Integers that differ between devices and are not all positions.
#pragma once

#include <cstdint>

#include <partita/prove/claims.hpp>
#include <partita/prove/numbers.hpp>

namespace partita::prove_detail {

/// Adds the axes that a scalar depends on. False if it may depend on something else.
constexpr bool add_axes(const workspace& w, const claim& c, device_row& row) {
  if (c.view == open_view || c.sums.any() || c.scale != 1) return false;
  const view& v = w.all.views[c.view];
  for (int i = 0; i < v.count; ++i) {
    const digit& each = v.digits[i];
    if (each.owner >= 0 || axis_of(each) >= w.mesh.rank) return false;
    row.add(axis_of(each), each.extent);
  }
  if (v.dims > 1) return false;
  const bool known = v.dims == 0 || (v.beyond[0] == outside::unknown &&
                                     lies_inside(v, 0, w.all.terms[c.term].shape));
  return known && row.devices <= device_row::most;
}
/// Finds the value of a scalar on a device of a row that has its axes. False if it is unknown.
constexpr bool number_on(const workspace& w, const claim& c, const device_row& row,
                         std::int64_t device, std::int64_t& n) {
  const view& v = w.all.views[c.view];
  std::int64_t at = v.dims > 0 ? v.start[0] : 0;
  for (int i = 0; i < v.count; ++i)
    at += row.coordinate(device, axis_of(v.digits[i])) * v.digits[i].stride;
  if (const int list = w.all.terms[c.term].listed; list >= 0) {
    const auto& numbers = w.all.lists[list];
    if (at < 0 || at >= static_cast<std::int64_t>(numbers.size())) return false;
    n = numbers[static_cast<std::size_t>(at)];
    return true;
  }
  return v.dims == 0 ? is_exact(w.all, c.seen(), 1, n)
                     : position_function(w.all, {c.term}).at(at, n);
}
/// Represents numbers by device as positions, if possible.
constexpr bool as_positions(const device_row& row, const vec<std::int64_t>& numbers, view& v) {
  v = view(0, 1);
  v.start[0] = numbers[0];
  for (int i = 0; i < row.count; ++i)
    if (row.extent[i] > 1)
      v.add(on_axis(row.axis[i]), 0, row.extent[i],
            numbers[static_cast<std::size_t>(row.step(i))] - numbers[0]);
  for (std::int64_t device = 0; device < row.devices; ++device) {
    std::int64_t at = v.start[0];
    for (int i = 0; i < v.count; ++i)
      at += row.coordinate(device, axis_of(v.digits[i])) * v.digits[i].stride;
    if (at != numbers[static_cast<std::size_t>(device)]) return false;
  }
  return v.good();
}
constexpr view index_of(const device_row& row) {
  view v(0, 1);
  for (int i = 0; i < row.count; ++i) v.add(on_axis(row.axis[i]), 0, row.extent[i], row.step(i));
  return v;
}

/// Evaluates an op on scalars that are known on each device.
///
/// Law       The result of an integer op on a device is its result for the numbers there.
constexpr void counts_by_device(workspace& w, const site& at, claim_list& to) {
  const tensor_type& type = at.result_type(0);
  if (w.defining || type.shape.rank > 0 || !is_integer(type.element) || at.operand_count() > 2)
    return;
  for (int c = to.first[at.result(0)]; c >= 0; c = w.claims[c].next)
    if (w.all.terms.is_positions(w.claims[c].term)) return;
  device_row row;
  for (const auto& c : w.chosen)
    if (!add_axes(w, c, row)) return;
  vec<std::int64_t> numbers;
  for (std::int64_t device = 0; device < row.devices; ++device) {
    std::int64_t x[2] = {}, made = 0;
    for (std::size_t i = 0; i < w.chosen.size(); ++i)
      if (!number_on(w, w.chosen[i], row, device, x[i])) return;
    if (!fold_exactly(at, at.operand_type(0).element, type.element, x[0], x[1], made)) return;
    numbers.push_back(made);
  }
  bool counted = true;
  for (const std::int64_t n : numbers) counted = counted && are_counted(type.element, n, n);
  if (view v; counted && as_positions(row, numbers, v))
    return w.add(to, at.result(0), w.all.terms.positions(type.element), v, {});
  if (to.first[at.result(0)] >= 0) return;
  const int t = w.all.terms.fresh({type.element, shape{row.devices}});
  w.all.terms[t].listed = static_cast<int>(w.all.lists.size());
  w.all.lists.push_back(numbers);
  w.add(to, at.result(0), t, index_of(row), {});
}

}  // namespace partita::prove_detail
