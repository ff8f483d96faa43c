/// Numbers and positions: constants, iotas, starts of shards, their sums and differences.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/claims.hpp>
#include <partita/prove/movement.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/support/checked.hpp>

namespace partita::prove_detail {

/// A view of a value with more dimensions, along which it repeats.
constexpr view spread(const view& v, int rank) {
  if (v.rank == rank) return v;
  return with_owners(v, rank, [](int d) { return d; });
}

constexpr void add_number(workspace& w, claim_list& to, value_id v, const tensor_type& t,
                          std::int64_t bits) {
  const operand_term scalar = w.all.number(bits, t.element);
  const view seen = spread(w.all.views[scalar.view], t.shape.rank);
  w.add(to, v, scalar.term, seen, {});
  if (w.defining && t.shape.rank > 0)
    w.all.reshaping_of(scalar.term, w.number(seen, scalar.term), t.shape);
}

/// Handles constants and iotas. False for other ops without operands.
constexpr bool lift_number(workspace& w, const program& p, op_id o, claim_list& to) {
  const op_node& n = p.op(o);
  const tensor_type& t = p.type(n.result);
  const auto attrs = p.attrs(o);
  if (n.def->constant) {
    add_number(w, to, n.result, t, attrs.empty() ? 0 : attrs[0]);
    return true;
  }
  if (n.def->id == def<op::iota>.id && are_counted(t.element, 0, t.shape.extents[attrs[0]])) {
    view v(t.shape.rank, 1);
    const int d = static_cast<int>(attrs[0]);
    v.add(d, 0, t.shape.extents[d], 1);
    const int positions = w.all.terms.positions(t.element);
    if (w.defining) w.all.reshaping_of(positions, w.number(v, positions), t.shape);
    w.add(to, n.result, positions, v, {});
    return true;
  }
  return false;
}

constexpr void lift_start(workspace& w, const program& p, op_id o, claim_list& to) {
  const op_node& n = p.op(o);
  view v(0, 1);
  std::int64_t step = op::shard_start::distance(p.attrs(o));
  const axis_list axes = op::shard_start::axes(p.attrs(o));
  for (int i = axes.count; i-- > 0;) {
    v.add(on_axis(axes.axes[i]), 0, w.mesh.size(axes.axes[i]), step);
    step = saturating_multiply(step, w.mesh.size(axes.axes[i]));
    if (!are_counted(p.type(n.result).element, 0, step)) return;
  }
  if (step >= 0) w.add(to, n.result, w.all.terms.positions(p.type(n.result).element), v, {});
}

constexpr bool reduces_dimension(span<const std::int64_t> attrs, int d) {
  for (std::size_t i = 1; i < attrs.size(); ++i)
    if (attrs[i] == d) return true;
  return false;
}
constexpr bool owner_before(const digit& a, const digit& b) {
  if ((a.owner < 0) != (b.owner < 0)) return b.owner < 0;
  return a.owner < 0 ? a.owner > b.owner : a.owner < b.owner;
}

/// Combines positions of two values to those of their sum or difference.
constexpr bool combined(const workspace& w, std::int64_t sign, int rank, view& v) {
  const view a = spread(w.all.views[w.chosen[0].view], rank);
  const view b = spread(w.all.views[w.chosen[1].view], rank);
  v = view(rank, 1);
  v.start[0] = a.start[0] + sign * b.start[0];
  int i = 0, k = 0;
  while (i < a.count || k < b.count) {
    const bool both = i < a.count && k < b.count && a.digits[i].owner == b.digits[k].owner;
    if (both && a.digits[i].extent != b.digits[k].extent) return false;
    if (both) {
      const std::int64_t step = a.digits[i].stride + sign * b.digits[k].stride;
      v.add(a.digits[i].owner, step == 0 ? no_dim : 0, a.digits[i].extent, step);
      ++i, ++k;
    } else if (k == b.count || (i < a.count && owner_before(a.digits[i], b.digits[k]))) {
      v.add(a.digits[i].owner, a.digits[i]);
      ++i;
    } else {
      v.add(b.digits[k].owner, b.digits[k].dim, b.digits[k].extent, sign * b.digits[k].stride);
      ++k;
    }
  }
  return v.good();
}

constexpr bool is_counting(std::uint64_t id) {
  return id == def<op::add>.id || id == def<op::subtract>.id || id == def<op::convert>.id ||
         id == def<op::multiply>.id;
}

/// Multiplies positions by a number.
constexpr bool multiplied(const workspace& w, dtype t, int rank, view& v) {
  std::int64_t by = 0, least = 0, greatest = 0;
  int number = 2;
  for (int i = 0; i < 2; ++i)
    if (w.all.views[w.chosen[i].view].count == 0) number = i;
  if (number == 2) return false;
  by = w.all.views[w.chosen[number].view].start[0];
  v = spread(w.all.views[w.chosen[1 - number].view], rank);
  v.range(0, least, greatest);
  const std::int64_t most = exact_up_to(t) / (by < 0 ? -by : by > 0 ? by : 1);
  if (least < -most || greatest > most) return false;
  v.start[0] *= by;
  for (int i = 0; i < v.count; ++i) {
    v.digits[i].stride *= by;
    if (by == 0) v.digits[i].dim = no_dim;
  }
  return true;
}
/// Handles positions from 0 on, modulo a number. (The bound is still a position.)
constexpr bool goes_around(workspace& w, const program& p, op_id o, claim_list& to) {
  const op_node& n = p.op(o);
  if (n.def->id != def<op::remainder>.id || w.defining) return false;
  for (const auto& c : w.chosen)
    if (!w.all.terms.is_positions(c.term) || c.sums.any() || c.scale != 1) return false;
  view v = w.all.views[w.chosen[0].view];
  const view& by = w.all.views[w.chosen[1].view];
  std::int64_t least = 0, greatest = 0;
  v.range(0, least, greatest);
  if (by.count > 0 || by.start[0] <= 0 || least < 0 || v.rank > 0) return false;
  const dtype element = p.type(n.result).element;
  if (greatest < by.start[0]) {
    w.add(to, n.result, w.all.terms.positions(element), v, {});
    return true;
  }
  v.beyond[0] = outside::wraps;
  w.add(to, n.result, w.all.terms.positions_modulo(element, by.start[0]), v, {});
  return true;
}

/// Handles sums and differences of positions in their exact range.
constexpr bool counts(workspace& w, const program& p, op_id o, claim_list& to) {
  const op_node& n = p.op(o);
  if (!is_counting(n.def->id)) return false;
  const dtype t = p.type(n.result).element;
  for (const auto& c : w.chosen)
    if (!w.all.terms.is_positions(c.term) || c.sums.any() || c.scale != 1) return false;
  view v;
  switch (n.def->id) {
    case def<op::add>.id:
      if (!combined(w, 1, p.type(n.result).shape.rank, v)) return false;
      break;
    case def<op::subtract>.id:
      if (!combined(w, -1, p.type(n.result).shape.rank, v)) return false;
      break;
    case def<op::multiply>.id:
      if (!multiplied(w, t, p.type(n.result).shape.rank, v)) return false;
      break;
    case def<op::convert>.id:
      v = w.all.views[w.chosen[0].view];
      if (!is_floating(t) || v.count > 0 || !exact(t, v.start[0])) break;
      add_number(w, to, n.result, p.type(n.result),
                 std::bit_cast<std::int64_t>(static_cast<double>(v.start[0])));
      return true;
    default:
      return false;
  }
  std::int64_t least = 0, greatest = 0;
  v.range(0, least, greatest);
  if (!are_counted(t, least, greatest)) return false;
  if (least < 0 && is_unsigned(t)) return false;
  const int positions = w.all.terms.positions(t);
  if (w.defining && p.type(n.result).shape.rank > 0)
    w.all.reshaping_of(positions, w.number(v, positions), p.type(n.result).shape);
  w.add(to, n.result, positions, v, {});
  return true;
}

}  // namespace partita::prove_detail
