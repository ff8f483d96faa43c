/// Ops element by element: operands that see their terms alike.
#pragma once

#include <cstdint>

#include <partita/prove/positions.hpp>
#include <partita/prove/sums.hpp>

namespace partita::prove_detail {

/// Are these tensors in another shape, all in the same? Then they become these tensors; gives how
/// the shape is seen, or -1.
constexpr int same_reshaping(const workspace& w, vec<operand_term>& operands) {
  int seen = -1;
  for (const auto& each : operands) {
    if (each.view != operand_term::by_element) continue;
    const operand_term& alias = w.all.terms[each.term].alias;
    if (alias.term < 0 || (seen >= 0 && alias.view != seen)) return -1;
    seen = alias.view;
  }
  for (auto& each : operands)
    if (each.view == operand_term::by_element) each.term = w.all.terms[each.term].alias.term;
  return seen;
}

/// The view without what stands beyond; -1 where the source sees that.
constexpr int seen_alike(workspace& w, const view& given, int rank) {
  view v = spread(given, rank);
  for (int d = 0; d < v.dims; ++d)
    if (v.beyond[d] >= outside::first_value) {
      if (w.defining) return -1;
      v.beyond[d] = outside::unknown;
    }
  return w.all.views.number(v);
}

constexpr bool commutes(const op_def& d) {
  switch (d.id) {
    case def<op::add>.id:
    case def<op::multiply>.id:
    case def<op::maximum>.id:
    case def<op::minimum>.id:
    case def<op::logical_and>.id:
    case def<op::logical_or>.id:
    case def<op::logical_xor>.id:
      return true;
    default:
      return false;
  }
}

constexpr void sort_commutative(const op_def& d, vec<operand_term>& operands) {
  if (!commutes(d)) return;
  if (operands[1].term < operands[0].term ||
      (operands[1].term == operands[0].term && operands[1].view < operands[0].view)) {
    const operand_term kept = operands[0];
    operands[0] = operands[1];
    operands[1] = kept;
  }
}

constexpr bool by_element(workspace& w, const site& at, claim_list& to) {
  const tensor_type& type = at.result_type(0);
  pending sums;
  if (!joint_sums(w, *at.p, at.op, sums)) return false;
  int leader = -1;
  shape common{max_elements};
  vec<operand_term> operands;
  for (std::size_t i = 0; i < w.chosen.size(); ++i) {
    const view& given = w.all.views[w.chosen[i].view];
    // (A tensor of one element is one of all positions that there are.)
    const bool single = at.operand_type(static_cast<int>(i)).shape.rank > 0 && given.dims > 0 &&
                        w.all.terms[w.chosen[i].term].shape.elements() == 1;
    if (given.count == 0 && !single) {
      view scalar = given;
      scalar.rank = 0;
      operands.push_back({w.chosen[i].term, w.all.views.number(scalar)});
      continue;
    }
    const int seen = seen_alike(w, given, type.shape.rank);
    if (seen < 0) return false;
    const bool positions = w.all.terms.is_positions(w.chosen[i].term);
    const shape& tensor = w.all.terms[w.chosen[i].term].shape;
    if (leader >= 0 && seen != leader) return false;
    if (leader < 0 || !positions) {
      if (leader >= 0 && common != shape{max_elements} && common != tensor) return false;
      common = tensor;
    }
    leader = seen;
    operands.push_back({w.chosen[i].term, operand_term::by_element});
  }
  if (leader < 0) common = {};
  const tensor_type of{type.element, common};
  const int shape_of = leader < 0 ? -1 : same_reshaping(w, operands);
  sort_commutative(*at.node().def, operands);
  int t = w.all.terms.find(at, operands, true, of);
  if (t < 0) t = w.all.terms.make(at, operands, true, of);
  if (shape_of >= 0) t = w.all.reshaped(t, w.all.reshaping_of(t, shape_of, common));
  w.add(to, at.result(0), t, leader < 0 ? view(type.shape.rank, 0) : w.all.views[leader], sums);
  return true;
}

/// Operands that see their terms alike, and scalars: the op on the terms, seen so.
constexpr bool by_element(workspace& w, const program& p, op_id o, claim_list& to) {
  const value_id result = p.op(o).result;
  const tensor_type& type = p.type(result);
  if (type.element == p.type(p.operand(o, 0)).element && p.op(o).def->id == def<op::convert>.id)
    return false;
  return by_element(w, site{&p, o}, to);
}

}  // namespace partita::prove_detail
