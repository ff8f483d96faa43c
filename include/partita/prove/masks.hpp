/// Masks: what a select leaves of a value, and what then stands beyond its ends.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/claims.hpp>

namespace partita::prove_detail {

/// For which positions does a comparison with numbers hold: [low, high).
constexpr bool truth_range(const workspace& w, int t, std::int64_t& low, std::int64_t& high) {
  if (!w.all.terms[t].at.made() || !w.all.terms[t].by_element) return false;
  if (w.all.terms.is(t, def<op::logical_and>)) {
    low = -max_elements;
    high = max_elements;
    for (int i = 0; i < w.all.terms[t].operand_count; ++i) {
      const operand_term each = w.all.terms.operand(w.all.terms[t], i);
      std::int64_t a = 0, b = 0;
      if (each.view != operand_term::by_element || !truth_range(w, each.term, a, b)) return false;
      low = a > low ? a : low;
      high = b < high ? b : high;
    }
    return true;
  }
  if (!w.all.terms.is(t, def<op::compare>)) return false;
  const operand_term &x = w.all.terms.operand(w.all.terms[t], 0),
                     &y = w.all.terms.operand(w.all.terms[t], 1);
  std::int64_t bound = 0;
  if (!w.all.terms.is_positions(x.term) || x.view != operand_term::by_element ||
      y.view == operand_term::by_element || !w.all.terms.is_positions(y.term) ||
      !w.all.is_number(y, bound))
    return false;
  low = -max_elements;
  high = max_elements;
  switch (static_cast<ops::direction>(w.all.terms.attrs(t)[0])) {
    case ops::direction::lt:
      high = bound;
      return true;
    case ops::direction::le:
      high = bound + 1;
      return true;
    case ops::direction::ge:
      low = bound;
      return true;
    case ops::direction::gt:
      low = bound + 1;
      return true;
    default:
      return false;
  }
}

/// The dimension along which both see the same positions, but for where they start; or -1.
constexpr int masked_dim(const view& flags, const view& v) {
  int dim = -1, found = 0;
  for (int i = 0; i < flags.count; ++i) {
    bool same = false;
    for (int k = 0; k < v.count; ++k) {
      if (v.digits[k].owner != flags.digits[i].owner ||
          v.digits[k].extent != flags.digits[i].extent ||
          v.digits[k].stride != flags.digits[i].stride || v.digits[k].dim < 0)
        continue;
      if (dim >= 0 && dim != v.digits[k].dim) continue;
      dim = v.digits[k].dim;
      same = true;
      ++found;
      break;
    }
    if (!same) return -1;
  }
  for (int k = 0; k < v.count; ++k) found -= v.digits[k].dim == dim;
  return found == 0 ? dim : -1;
}

/// The same, of a value that is repeated along the dimension: a piece of it in the shape that the
/// source repeats it in.
constexpr bool mask_repeated(workspace& w, const program& p, op_id o, const view& flags,
                             std::int64_t low, std::int64_t high, const operand_term& scalar,
                             claim_list& to) {
  const claim x = w.chosen[1];
  const view& seen = w.all.views[x.view];
  int d = -1;
  for (int i = 0; i < flags.count; ++i)
    if (flags.digits[i].owner >= 0) d = flags.digits[i].owner;
  if (w.defining || d < 0 || !seen.repeats(d) || x.sums.any()) return false;
  bool done = false;
  for (int i = w.all.terms[x.term].reshaped; i >= 0; i = w.all.reshapings[i].next) {
    const auto whole = w.all.reshapings[i];
    piece pieces[max_rank];
    if (whole.to.rank != flags.rank ||
        !relative_view(w.all.views[whole.view], whole.to, seen, w.all.terms[x.term].shape)
             .find(pieces) ||
        !pieces[d].free)
      continue;
    pieces[d] = piece();
    pieces[d].start = flags.start[0];
    for (int k = 0; k < flags.count; ++k)
      pieces[d].add(flags.digits[k].owner < 0 ? flags.digits[k].owner : 0, flags.digits[k].extent,
                    flags.digits[k].stride);
    view v = as_view(pieces, whole.to.rank);
    std::int64_t least = 0, greatest = 0;
    v.range(d, least, greatest);
    const std::int64_t extent = whole.to.extents[d];
    if (least < 0 || low > 0 || high != extent) continue;
    v.beyond[d] = w.all.beyond(scalar);
    w.add(to, p.op(o).result, w.all.reshaped(x.term, i), v, {});
    done = true;
  }
  return done;
}

/// select(is inside, x, scalar): x, with the scalar beyond its ends.
constexpr bool masks(workspace& w, const program& p, op_id o, claim_list& to) {
  const claim &mask = w.chosen[0], &x = w.chosen[1];
  std::int64_t low = 0, high = 0;
  const operand_term scalar = w.all.scalar(w.given[2]);
  if (scalar.view < 0 || w.chosen[2].sums.any() || mask.sums.any() ||
      !truth_range(w, mask.term, low, high))
    return false;
  const view& flags = w.all.views[mask.view];
  view v = w.all.views[x.view];
  if (flags.dims != 1 || flags.rank != v.rank) return false;
  const int dim = masked_dim(flags, v);
  if (dim < 0) return mask_repeated(w, p, o, flags, low, high, scalar, to);
  const std::int64_t extent = w.all.terms[x.term].shape.extents[dim];
  const std::int64_t shift = v.start[dim] - flags.start[0];
  low += shift;
  high += shift;
  std::int64_t least = 0, greatest = 0;
  v.range(dim, least, greatest);
  if ((least > 0 ? least : 0) < low) return false;                            // cut off
  if ((greatest < extent - 1 ? greatest : extent - 1) >= high) return false;  // cut off
  const int fill = w.all.beyond(scalar);
  const bool all_filled = (least >= 0 || low >= 0) && (greatest < extent || high <= extent);
  if (v.beyond[dim] == outside::wraps) return false;
  if (all_filled)
    v.beyond[dim] = fill;
  else if (v.beyond[dim] != fill)
    v.beyond[dim] = outside::unknown;
  if (x.sums.any() && !w.is_identity(w.chosen[2], combiner::add)) return false;
  w.add(to, p.op(o).result, x.term, v, x.sums);
  return true;
}

}  // namespace partita::prove_detail
