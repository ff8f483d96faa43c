/// Reductions without a combiner: of pairs of a value and its position, and by user functions.
///
/// Law       The extreme of the extremes of shards, in any order, is the extreme of all elements: a
///           position decides between equal values. Likewise, the k largest elements are among the
///           k largest of each shard. An associative function combines its results for shards, in
///           their order if it is not commutative.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/claims.hpp>
#include <partita/prove/laws.hpp>

namespace partita::prove_detail {

constexpr bool is_fold(const site& at) { return at.def().id == def<op::fold>.id; }
constexpr bool joins_pieces(const site& at) {
  return is_fold(at) || ((at.def().id == def<op::reduce>.id || at.def().id == def<op::top_k>.id) &&
                         at.operand_count() == 2);
}

/// The dimensions of the operands that such an op reduces or searches, and the dimensions of the
/// results that the others become.
struct joined_dims {
  bool cut[max_rank] = {};  ///< by dimension of the operands: true if the op reduces or searches it
  int to_dim[max_rank] = {};  ///< dimension of the results; -1: absent
  int rank = 0;               ///< of the results

  constexpr explicit joined_dims(const site& at) {
    const int given = at.operand_type(0).shape.rank;
    const bool keeps = at.def().id == def<op::top_k>.id;
    const op::fold::parts fold(at.attrs(), static_cast<std::size_t>(at.operand_count()));
    for (int d = 0; d < given; ++d) {
      cut[d] = keeps ? d == given - 1
               : is_fold(at)
                   ? fold.reduces(d)
                   : op::reduce::reduced(at.attrs().data(), static_cast<int>(at.attrs().size()), d);
      to_dim[d] = cut[d] && !keeps ? -1 : rank++;
    }
  }
};

/// True if two such ops are equal except for the dimensions that they reduce or search.
constexpr bool join_alike(const site& a, const site& b) {
  if (!is_fold(a)) return a.attrs()[0] == b.attrs()[0];
  const auto n = static_cast<std::size_t>(a.operand_count());
  const op::fold::parts x(a.attrs(), n), y(b.attrs(), n);
  return x.commutes == y.commutes && same_elements(x.identities, y.identities) &&
         same_elements(x.results, y.results) && same_elements(x.code, y.code);
}

/// Handles such an op on shards. The results for the shards are separate terms with one more
/// dimension.
constexpr bool reduce_pieces(workspace& w, const site& at, claim_list& to) {
  if (!joins_pieces(at) || at.op < 0) return false;
  for (const auto& c : w.chosen)
    if (c.sums.any() || c.scale != 1) return false;
  int t = w.all.terms.first_candidate(at.def(), w.given);
  for (; t >= 0 && w.step(); t = w.all.terms[t].next) {
    if (w.all.terms[t].element != at.result_type(0).element ||
        w.all.terms[t].shape.rank == max_rank || !join_alike(w.all.terms[t].at, at))
      continue;
    op_law law(w.all, w.room, t, w.map(), at, w.given);
    piece pieces;
    law.joined = &pieces;
    vec<view> results;
    pending sums;
    if (!law.apply(results, sums) || sums.any() || pieces.count == 0) continue;
    std::int64_t count = 1;
    for (int i = 0; i < pieces.count; ++i) count *= pieces.digits[i].extent;
    const int first = w.all.pieces_of(t, law.joined_loop, count, at.result_count());
    for (int r = 0; r < at.result_count(); ++r) {
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

/// Handles such an op on the results for all shards: its results are those of the source.
constexpr bool reduce_again(workspace& w, const site& at, claim_list& to) {
  if (!joins_pieces(at) || at.op < 0) return false;
  const claim a = w.chosen[0];
  const int of = w.all.terms[a.term].pieces_of;
  if (of < 0 || a.view == open_view || w.all.terms[of].at.def().id != at.def().id ||
      w.all.terms[of].at.operand_count() != at.operand_count() ||
      !join_alike(w.all.terms[of].at, at))
    return false;
  for (int i = 0; i < at.operand_count(); ++i) {
    const claim& each = w.chosen[static_cast<std::size_t>(i)];
    if (each.term != a.term + i || w.all.terms[each.term].pieces_of != of + i ||
        each.view != a.view || each.sums.any() || each.scale != 1)
      return false;
  }
  const view& v = w.all.views[a.view];
  const shape &given = at.operand_type(0).shape, &tensor = w.all.terms[a.term].shape;
  const int last = v.dims - 1;
  const joined_dims dims(at);
  const bool ordered = is_fold(at) && !op::fold::parts(at.attrs(), w.chosen.size()).commutes;
  piece all, of_each;  // the shards, and the part of each shard
  view result(dims.rank, last);
  std::int64_t seen[max_rank] = {};
  for (auto& n : seen) n = 1;
  for (int i = 0; i < v.count; ++i) {
    const digit& each = v.digits[i];
    const bool is_cut = each.owner >= 0 && dims.cut[each.owner];
    if (is_cut) seen[each.owner] *= each.extent;
    if (!is_cut && each.dim == last) return false;
    if (!is_cut)
      result.add(each.owner < 0 ? each.owner : dims.to_dim[each.owner], each);
    else if (each.dim == last)
      all.add(0, each.extent, each.stride);
    else if (each.dim == dims.to_dim[each.owner] && (each.dim >= 0 || !is_fold(at)))
      of_each.add(0, each.extent, each.stride);
    else
      return false;
  }
  for (int d = 0; d < given.rank; ++d) {
    if (!dims.cut[d]) continue;
    if (seen[d] != given.extents[d]) return false;
    const int to = dims.to_dim[d];
    if (to < 0) continue;
    if (v.start[to] != 0 || of_each.covered() != tensor.extents[to]) return false;
    result.add(to, to, tensor.extents[to], 1);
  }
  if (v.start[last] != 0 || all.covered() != tensor.extents[last]) return false;
  if (ordered && (all.count != 1 || all.digits[0].stride != 1)) return false;
  for (int d = 0; d < last; ++d) {
    result.start[d] = v.start[d];
    // (Padding is folded, too.)
    result.beyond[d] = is_fold(at) ? outside::unfilled(v.beyond[d]) : v.beyond[d];
  }
  if (!result.good()) return false;
  for (int r = 0; r < at.result_count(); ++r)
    w.add(to, at.result(r), {of + r, w.number(result, of + r), {}});
  return true;
}

}  // namespace partita::prove_detail
