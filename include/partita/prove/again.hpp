/// Reductions that joins no combiner: of pairs of a value and its position.
///
/// Law       What is extreme among the extremes of pieces, put together in any order, is extreme
///           among all: a position tells which of equal values is meant.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/claims.hpp>
#include <partita/prove/laws.hpp>

namespace partita::prove_detail {

constexpr bool is_of_pairs(const site& at) {
  return at.def().id == def<op::reduce>.id && at.operand_count() == 2;
}

/// Of pieces: the results for each of them, terms of their own that have one dimension more.
constexpr bool reduce_pieces(workspace& w, const site& at, claim_list& to) {
  if (!is_of_pairs(at) || at.op < 0) return false;
  for (const auto& c : w.chosen)
    if (c.sums.any() || c.scale != 1) return false;
  int t = w.all.terms.first_candidate(at.def(), w.given);
  for (; t >= 0 && w.step(); t = w.all.terms[t].next) {
    if (w.all.terms[t].element != at.result_type(0).element ||
        w.all.terms[t].shape.rank == max_rank || w.all.terms[t].at.attrs()[0] != at.attrs()[0])
      continue;
    op_law law(w.all, w.room, t, w.map(), at, w.given);
    piece pieces;
    law.joined = &pieces;
    vec<view> results;
    pending sums;
    if (!law.apply(results, sums) || sums.any() || pieces.count == 0) continue;
    std::int64_t count = 1;
    for (int i = 0; i < pieces.count; ++i) count *= pieces.digits[i].extent;
    const int first = w.all.pieces_of(t, count);
    for (int r = 0; r < 2; ++r) {
      const view& of = results[static_cast<std::size_t>(r)];
      view v(of.rank, of.dims + 1);
      for (int d = 0; d < of.dims; ++d) {
        v.start[d] = of.start[d];
        v.beyond[d] = of.beyond[d];
      }
      for (int i = 0; i < of.count; ++i) v.add(of.digits[i].owner, of.digits[i]);
      for (int i = 0; i < pieces.count; ++i)
        v.add(pieces.digits[i].owner, of.dims, pieces.digits[i].extent, pieces.digits[i].stride);
      if (!v.good()) return false;
      w.add(to, at.result(r), {first + r, w.number(v, first + r), {}});
    }
    return true;
  }
  return false;
}

/// Of those of all pieces: the results.
constexpr bool reduce_again(workspace& w, const site& at, claim_list& to) {
  if (!is_of_pairs(at) || w.chosen.size() != 2) return false;
  const claim a = w.chosen[0], b = w.chosen[1];
  const int of = w.all.terms[a.term].pieces_of;
  if (of < 0 || b.term != a.term + 1 || w.all.terms[b.term].pieces_of != of + 1 ||
      a.view != b.view || a.view == open_view || a.sums.any() || b.sums.any() || a.scale != 1 ||
      b.scale != 1 || w.all.terms[of].at.attrs()[0] != at.attrs()[0])
    return false;
  const view& v = w.all.views[a.view];
  const shape &given = at.operand_type(0).shape, &tensor = w.all.terms[a.term].shape;
  const int last = v.dims - 1;
  int to_dim[max_rank] = {}, rank = 0;
  bool reduced[max_rank] = {};
  for (int d = 0; d < given.rank; ++d) {
    reduced[d] = op::reduce::reduced(at.attrs().data(), static_cast<int>(at.attrs().size()), d);
    to_dim[d] = reduced[d] ? -1 : rank++;
  }
  piece all;
  view result(rank, last);
  std::int64_t seen[max_rank] = {};
  for (auto& n : seen) n = 1;
  for (int i = 0; i < v.count; ++i) {
    const digit& each = v.digits[i];
    const bool is_reduced = each.owner >= 0 && reduced[each.owner];
    if (is_reduced != (each.dim == last)) return false;
    if (is_reduced) {
      all.add(0, each.extent, each.stride);
      seen[each.owner] *= each.extent;
    } else {
      result.add(each.owner < 0 ? each.owner : to_dim[each.owner], each);
    }
  }
  for (int d = 0; d < given.rank; ++d)
    if (reduced[d] && seen[d] != given.extents[d]) return false;
  if (v.start[last] != 0 || all.covered() != tensor.extents[last]) return false;
  for (int d = 0; d < last; ++d) {
    result.start[d] = v.start[d];
    result.beyond[d] = v.beyond[d];
  }
  if (!result.good()) return false;
  for (int r = 0; r < 2; ++r) w.add(to, at.result(r), {of + r, w.number(result, of + r), {}});
  return true;
}

}  // namespace partita::prove_detail
