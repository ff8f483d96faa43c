/// Elementwise ops that the source has, too: found by their operands before other rules are tried.
#pragma once

#include <partita/prove/claims.hpp>

namespace partita::prove_detail {

/// Finds the common view of an elementwise op's operands with one claim each: tensors with equal
/// views, and scalars. Negative for other operands. (A select may have more claims than its
/// result.)
constexpr int given_elements(workspace& w, const program& p, const op_node& n,
                             const claim_list& of) {
  const value_id* const operands = p.operand_list.data() + n.operand_begin;
  int seen = -1;
  w.element_given.clear();
  if (n.def->id == def<op::select>.id) return -1;
  for (int i = 0; i < n.operand_count; ++i) {
    const int first = of.first.data()[operands[i]];
    if (first < 0) return -1;
    const claim& is = w.claims[first];
    if (is.next >= 0 || is.sums.any()) return -1;
    const bool scalar = w.all.views[is.view].count == 0;
    if (!scalar && seen >= 0 && is.view != seen) return -1;
    if (!scalar) seen = is.view;
    w.element_given.push_back({{is.term, scalar ? is.view : operand_term::by_element}, is.scale});
  }
  return seen;
}
/// Handles a local op with the operands of a source op: its result is the source's.
///
/// Law       If the source computes r R of s T, s' T', ... (of one shape, without views) and of
///           scalars, an equal op makes r v(R) of s v(T), s' v(T'), ... and these scalars, for any
///           view v without scalars as padding.
constexpr bool source_element(workspace& w, const program& p, op_id o, claim_list& to) {
  const op_node& n = p.ops.data()[o];
  const int seen = given_elements(w, p, n, to);
  if (seen < 0 || !w.all.views.is_unfilled(seen) ||
      w.all.views[seen].rank != p.types.data()[n.result].shape.rank)
    return false;
  const scaled_term* const made =
      w.elements.find(site(p, o), {w.element_given.data(), w.element_given.size()});
  if (made != nullptr) w.add(to, n.result, {made->of.term, seen, {}, made->scale});
  return made != nullptr;
}
constexpr void keep_source_element(workspace& w, const program& p, op_id o, const claim_list& of) {
  const op_node& n = p.ops.data()[o];
  const int made = of.first.data()[n.result];
  const int seen = made < 0 ? -1 : given_elements(w, p, n, of);
  if (seen < 0) return;
  const claim& is = w.claims[made];
  const shape& tensor = w.all.terms[is.term].shape;
  if (is.next >= 0 || is.sums.any() || is.view != seen || !w.all.views[seen].is_whole(tensor))
    return;
  for (const scaled_term& each : w.element_given)
    if (each.of.view == operand_term::by_element && w.all.terms[each.of.term].shape != tensor)
      return;
  const span<const scaled_term> given(w.element_given.data(), w.element_given.size());
  if (w.elements.find(site(p, o), given) == nullptr)
    w.elements.add(site(p, o), given, {{is.term}, is.scale});
}

}  // namespace partita::prove_detail
