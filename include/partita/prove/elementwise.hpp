/// Elementwise ops on operands with equal views of their terms.
#pragma once

#include <cstdint>

#include <partita/prove/moving.hpp>
#include <partita/prove/positions.hpp>
#include <partita/prove/sums.hpp>

namespace partita::prove_detail {

/// Returns the view of the original tensors if all operands are reshaped in the same way, and -1
/// otherwise. Replaces the operands by the original tensors, of shape `inside`. Padded shapes are
/// excluded because the op changes the padding.
constexpr int same_reshaping(const workspace& w, vec<operand_term>& operands, shape& inside) {
  int seen = -1, first = -1;
  for (const auto& each : operands) {
    if (each.view != operand_term::by_element) continue;
    const operand_term& alias = w.all.terms[each.term].alias;
    if (alias.term < 0 || (seen >= 0 && alias.view != seen) || !w.all.views.is_unfilled(alias.view))
      return -1;
    const shape& whole = w.all.terms[alias.term].shape;
    if (first >= 0 && w.all.terms[first].shape != whole) return -1;
    first = alias.term;
    seen = alias.view;
  }
  if (first >= 0) inside = w.all.terms[first].shape;
  for (auto& each : operands)
    if (each.view == operand_term::by_element) each.term = w.all.terms[each.term].alias.term;
  return seen;
}

/// The view without scalars as padding.
constexpr view without_beyond(view v) {
  for (int d = 0; d < v.dims; ++d) v.beyond[d] = outside::unfilled(v.beyond[d]);
  return v;
}

/// The view of an operand that must not lose its padding, because the source sees it.
constexpr int no_view = -2;
constexpr int seen_alike(workspace& w, int given, int rank) {
  if (w.all.views.is_unfilled(given) && w.all.views[given].rank == rank) return given;
  const view v = spread(w.all.views[given], rank), seen = without_beyond(v);
  return w.defining && seen != v ? no_view : w.all.views.number(seen);
}

constexpr bool is_one_element(const shape& s) { return s.rank > 0 && s.elements() == 1; }
/// True if all elements of a tensor are equal.
constexpr bool is_one_value(const workspace& w, const term& t) {
  return t.own >= 0 && w.all.views[t.own].count == 0 && t.shape.elements() > 1;
}
/// True if an operand is a scalar. (A tensor of one element sees all positions that exist.)
constexpr bool repeats_one(const workspace& w, const claim& c, int rank) {
  const view& seen = w.all.views[c.view];
  if (seen.count > 0) return false;
  return rank == 0 || seen.dims == 0 || !is_one_element(w.all.terms[c.term].shape);
}

/// True if a scalar is not unknown padding.
constexpr bool is_known_scalar(const workspace& w, const operand_term& scalar) {
  const view& v = w.all.views[scalar.view];
  const shape& tensor = w.all.terms[scalar.term].shape;
  for (int d = 0; d < v.dims; ++d)
    if (v.beyond[d] == outside::unknown && !counts_positions(tensor, d) &&
        (v.start[d] < 0 || v.start[d] >= tensor.extents[d]))
      return false;
  return true;
}
/// Handles operands with equal views, and scalars: the result is the op on the terms, with that
/// view. Returns true if no other claim is needed, because the value belongs to the source. (In the
/// source, a result on scalars may be a tensor that a local program pads, so it is a term, too.)
constexpr bool by_element(workspace& w, const site& at, claim_list& to) {
  const tensor_type& type = at.result_type(0);
  pending sums;
  if (!joint_sums(w, *at.p, at.op, sums)) return false;
  int leader = no_view;
  int common = -1;  // the term with the shape of all (for positions alone, any shape)
  vec<operand_term>& operands = w.element_operands;
  vec<double>& scales = w.element_scales;
  operands.clear();
  scales.clear();
  bool repeated = false;  // true if a scalar has the view of a padded one
  for (std::size_t i = 0; i < w.chosen.size(); ++i) {
    const claim& mine = w.chosen[i];
    const int rank = at.operand_type(static_cast<int>(i)).shape.rank;
    scales.push_back(mine.scale);
    if (repeats_one(w, mine, rank)) {
      operands.push_back(w.all.filling(w.all.scalar(mine.seen())));
      if (!is_known_scalar(w, operands.back())) return false;
      continue;
    }
    const int seen = seen_alike(w, mine.view, type.shape.rank);
    if (seen == no_view) return false;
    const term& of = w.all.terms[mine.term];
    const shape& tensor = of.shape;
    if (leader != no_view && seen != leader) return false;
    if (leader == no_view || !of.positions) {
      if (common >= 0 && w.all.terms[common].shape != tensor &&
          w.all.terms[common].shape != all_positions)
        return false;
      common = mine.term;
    }
    leader = seen;
    const operand_term& alias = of.alias;
    if (is_one_value(w, of)) {
      repeated = true;
      operands.push_back(w.all.filling(w.all.scalar({mine.term, of.own})));
    } else if (alias.term >= 0 && w.all.views[alias.view].count == 0 &&
               !is_one_element(w.all.terms[alias.term].shape)) {
      repeated = true;
      operands.push_back(w.all.filling(w.all.scalar(alias)));
    } else {
      operands.push_back({mine.term, operand_term::by_element});
    }
  }
  bool scalars = true;
  for (const auto& each : operands) scalars = scalars && each.view != operand_term::by_element;
  tensor_type space{type.element, {}};
  const shape all_shape = common < 0 ? all_positions : w.all.terms[common].shape;
  if (leader != no_view && !scalars) space.shape = all_shape;
  tensor_type inside = space;
  const int shape_of = leader == no_view ? -1 : same_reshaping(w, operands, inside.shape);
  element_form form(w.all, at);
  for (std::size_t i = 0; i < operands.size(); ++i) form.add(operands[i], scales[i]);
  double scale = 1;
  operand_term made = form.make(inside, scale);
  // (For positions and a shaped term, an equal term of another shape has more elements.)
  if (made.view == operand_term::by_element && leader != no_view &&
      w.all.terms[made.term].shape != inside.shape &&
      w.all.views.reaches_beyond(leader, space.shape))
    return false;
  const bool all = w.defining ? leader != no_view || type.shape.rank == 0 : w.is_source(made.term);
  if (scalars ? repeated
              : made.view != operand_term::by_element && leader != no_view &&
                    !sees_inside(w.all.views[leader], space.shape)) {
    const view one = made.view < 0 ? view(0, 0) : w.all.views[made.view];
    const int seen = w.all.views.number(spread(one, all_shape.rank));
    made.term = w.all.reshaped(made.term, w.all.reshaping_of(made.term, seen, all_shape));
    w.add(to, at.result(0), {made.term, leader, sums, scale});
    return true;
  }
  if (made.view != operand_term::by_element) {
    w.add(to, at.result(0), made.term, spread(w.all.views[made.view], type.shape.rank), sums,
          scale);
    return all;
  }
  if (shape_of >= 0)
    made.term = w.all.reshaped(made.term, w.all.reshaping_of(made.term, shape_of, space.shape));
  const int seen = leader == no_view ? w.number(view(type.shape.rank, 0), made.term) : leader;
  w.add(to, at.result(0), {made.term, seen, sums, scale});
  if (w.defining && !w.all.views[seen].is_whole(space.shape))
    w.reshape(made.term, seen, type.shape);
  return all;
}

}  // namespace partita::prove_detail
