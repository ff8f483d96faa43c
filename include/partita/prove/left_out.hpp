/// Removes selects that skip devices without data.
///
/// Law       A product is zero if an operand is zero. A product on a device whose shard of an
///           operand is zero padding may therefore be replaced by zero.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/by_device.hpp>
#include <partita/prove/claims.hpp>

namespace partita::prove_detail {

/// True if a value is zero padding on a device of a row, whatever the coordinates along other axes.
constexpr bool is_nothing_on(const workspace& w, const claim& c, const device_row& row,
                             std::int64_t device) {
  if (c.view == open_view || c.sums.any()) return false;
  const view& v = w.all.views[c.view];
  const term& of = w.all.terms[c.term];
  for (int d = 0; d < v.dims; ++d) {
    if (outside::turns(v.beyond[d]) ||
        !w.all.is_identity(outside::filling(v.beyond[d]), combiner::add, of.element))
      continue;
    std::int64_t least = v.start[d], greatest = v.start[d];
    for (int i = 0; i < v.count; ++i) {
      const digit& each = v.digits[i];
      if (each.dim != d) continue;
      if (each.owner < 0 && row.has(axis_of(each))) {
        const std::int64_t moved = row.coordinate(device, axis_of(each)) * each.stride;
        least += moved;
        greatest += moved;
        continue;
      }
      const std::int64_t reach = (each.extent - 1) * each.stride;
      (reach < 0 ? least : greatest) += reach;
    }
    if (least >= of.shape.extents[d] || greatest < 0) return true;
  }
  return false;
}
constexpr bool multiplies(const op_def& d) {
  return d.id == def<op::convolution>.id || d.id == def<op::dot_general>.id ||
         d.id == def<op::multiply>.id;
}
/// True if a product is zero on a device because one of its operands is.
constexpr bool is_zero_product_on(const workspace& w, const program& p, op_id product,
                                  const claim_list& to, const device_row& row,
                                  std::int64_t device) {
  for (value_id v : p.operands(product))
    for (int c = to.first[v]; c >= 0; c = w.claims[c].next)
      if (is_nothing_on(w, w.claims[c], row, device)) return true;
  return false;
}
/// Handles select(flag, product, 0) whose flag depends on devices and holds wherever there is data.
constexpr void leaves_out_nothing(workspace& w, const program& p, op_id o, claim_list& to) {
  if (w.defining || p.op(o).def->id != def<op::select>.id || w.some_open) return;
  const op_id product = p.producer(p.operand(o, 1));
  const claim &flag = w.chosen[0], &x = w.chosen[1];
  if (!multiplies(*p.op(product).def) || !w.is_identity(w.chosen[2], combiner::add)) return;
  device_row row;
  if (p.type(p.operand(o, 0)).shape.rank > 0 || !add_axes(w, flag, row)) return;
  const view& v = w.all.views[flag.view];
  if (v.dims != 1) return;
  position_function f(w.all, {flag.term});
  for (std::int64_t device = 0; device < row.devices; ++device) {
    std::int64_t at = v.start[0], holds = 0;
    for (int i = 0; i < v.count; ++i)
      at += row.coordinate(device, axis_of(v.digits[i])) * v.digits[i].stride;
    if (!f.at(at, holds) || (holds == 0 && !is_zero_product_on(w, p, product, to, row, device)))
      return;
  }
  w.add(to, p.op(o).result, claim{x.term, x.view, x.sums, x.scale});
}

}  // namespace partita::prove_detail
