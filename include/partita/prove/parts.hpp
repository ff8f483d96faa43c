/// Views of a part of a source tensor in the global tensor.
#pragma once

#include <partita/prove/piece.hpp>
#include <partita/prove/terms.hpp>

namespace partita::prove_detail {

/// True if a dimension of one view and a dimension of another have the same digits.
constexpr bool same_along(const view& a, int d, const view& b, int e) {
  int mine = 0, theirs = 0;
  const int end = a.find(d, mine), other = b.find(e, theirs);
  if (end - mine != other - theirs) return false;
  for (; mine < end; ++mine, ++theirs) {
    const digit &x = a.digits[mine], &y = b.digits[theirs];
    if (x.dim != y.dim || x.extent != y.extent || x.stride != y.stride) return false;
  }
  return true;
}
/// Finds the view of one shape of a tensor in another, dimension by dimension. (Along all other
/// dimensions both repeat.)
constexpr bool match_dimensions(const view& a, const shape& of_a, const view& b, const shape& of_b,
                                view& seen) {
  if (a.dims != b.dims) return false;
  for (int dim = 0; dim < a.dims; ++dim)
    if (a.start[dim] != b.start[dim] || a.beyond[dim] != b.beyond[dim]) return false;
  seen = view(of_a.rank, of_b.rank);
  unsigned used = 0;
  for (int d = 0; d < of_a.rank; ++d) {
    int e = 0;
    const auto fits = [&] {
      return (used >> e & 1u) == 0 && of_a.extents[d] == of_b.extents[e] && same_along(a, d, b, e);
    };
    while (e < of_b.rank && !fits()) ++e;
    if (e == of_b.rank && !a.repeats(d)) return false;
    if (e == of_b.rank) continue;
    used |= 1u << e;
    seen.add(d, e, of_a.extents[d], 1);
  }
  for (int e = 0; e < of_b.rank; ++e)
    if ((used >> e & 1u) == 0 && !b.repeats(e)) return false;
  for (int i = 0; i < a.count; ++i)
    if (a.digits[i].owner < 0) return false;
  return true;
}
/// Finds how a tensor that the source sees as `whole` sees the term of a part of it. Along a
/// dimension in which a term repeats, a part with padding is seen as in the term.
constexpr bool find_whole(const meanings& all, const operand_term& whole, const shape& s,
                          const operand_term& part, view& seen) {
  const term& of = all.terms[part.term];
  const bool in_shape = of.alias == whole && of.shape == s;
  if (!in_shape && part.view < 0) return false;
  const view& source = all.views[whole.view];
  if (!in_shape && whole.term != part.term)
    return of.alias.term == whole.term &&
           match_dimensions(source, s, all.views[of.alias.view], of.shape, seen);
  seen = source;
  if (!in_shape && (whole.view != of.own || of.shape != s)) return true;
  seen = view(s);
  for (int d = 0; d < s.rank && part.view >= 0; ++d)
    if (source.repeats(d) && !all.views[part.view].sees_along(d)) seen.drop(d);
  return true;
}
/// Finds the shard of each dimension that a part holds.
constexpr bool find_pieces(const meanings& all, const operand_term& whole, const shape& s,
                           const operand_term& part, piece* pieces) {
  view seen;
  return part.view >= 0 && find_whole(all, whole, s, part, seen) &&
         relative_view(seen, s, all.views[part.view], all.terms[part.term].shape,
                       all.own(part.term))
             .find(pieces);
}

}  // namespace partita::prove_detail
