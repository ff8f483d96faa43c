/// Running sums (products, ...) along a sharded dimension.
///
/// Law       A running sum along a global dimension is, in each shard, the running sum of the
///           shard, combined with the totals of all shards before it. A total is the last element
///           of the shard's running sum.
#pragma once

#include <cstdint>

#include <partita/op/cumsum.hpp>
#include <partita/prove/claims.hpp>
#include <partita/prove/laws.hpp>

namespace partita::prove_detail {

constexpr bool runs(const op_def& d) { return d.id == def<op::cumsum>.id; }
/// True if two such ops are equal except for including the element itself.
constexpr bool run_alike(span<const std::int64_t> a, span<const std::int64_t> b) {
  return a[1] == b[1] && op::cumsum::combiner_of(a) == op::cumsum::combiner_of(b);
}
constexpr bool is_plain(const claim& c) {
  return c.view != open_view && !c.sums.any() && c.scale == 1;
}

/// Finds the running sum of a shard of the operand of source op t. `row`: if the operand repeats,
/// the devices that have the shards.
constexpr bool run_piece(workspace& w, const site& at, int t, const device_row* row, bool& some_cut,
                         claim_list& to) {
  const auto mine = at.attrs(), whole = w.all.terms.attrs(t);
  // The exclusive running sum follows from the inclusive one.
  if (whole[0] != mine[0] || !run_alike(whole, mine) || mine[2] > whole[2]) return false;
  op_law law(w.all, w.room, t, w.map(), at, w.given);
  piece pieces;
  law.joined = &pieces;
  law.same_attributes = mine[2] == whole[2];
  law.repeated = row;
  vec<view> results;
  pending sums;
  const bool good = law.apply(results, sums);
  some_cut = law.some_cut;
  if (!good || sums.any() || pieces.count == 0 || !results[0].good()) return false;
  std::int64_t count = 1;
  for (int i = 0; i < pieces.count; ++i) count *= pieces.digits[i].extent;
  const std::int64_t block = at.operand_type(0).shape.extents[mine[0]];
  const auto& run = w.all.running_of(t, static_cast<int>(mine[0]), count, block);
  const int made = mine[2] != 0 ? run.without : run.with;
  w.add(to, at.result(0), {made, w.number(results[0], made), {}});
  return true;
}

/// Handles a running sum of a shard.
constexpr bool run_pieces(workspace& w, const site& at, claim_list& to) {
  if (at.op < 0 || !runs(at.def()) || !is_plain(w.chosen[0])) return false;
  bool any = false;
  int t = w.all.terms.first_candidate(at.def(), w.given);
  for (; t >= 0 && w.step(); t = w.all.terms[t].next) {
    bool some_cut = false;
    any = run_piece(w, at, t, nullptr, some_cut, to) || any;
    for (std::uint32_t axes = 1; some_cut && axes >> w.mesh.rank == 0; ++axes) {
      device_row row;
      for (int a = 0; a < w.mesh.rank; ++a)
        if ((axes >> a & 1u) != 0) row.add(a, w.mesh.size(a));
      any = run_piece(w, at, t, &row, some_cut, to) || any;
    }
  }
  return any;
}

/// Handles a running sum of the totals of all shards, in order: the result is the sum before each
/// shard.
constexpr bool run_totals(workspace& w, const site& at, claim_list& to) {
  if (at.op < 0 || !runs(at.def()) || at.attrs()[2] == 0 || !is_plain(w.chosen[0])) return false;
  const claim given = w.chosen[0];
  const meanings::running* const run = w.all.running_with(given.term);
  if (run == nullptr || !run_alike(w.all.terms.attrs(run->of), at.attrs())) return false;
  const view& v = w.all.views[given.view];
  const int along = static_cast<int>(at.attrs()[0]);
  const bool backwards = at.attrs()[1] != 0;
  if (v.start[run->dim] != (backwards ? 0 : run->block - 1)) return false;
  view result(v.rank, v.dims);
  bool all = false;
  for (int i = 0; i < v.count; ++i) {
    const digit& each = v.digits[i];
    if ((each.owner == along) != (each.dim == run->dim)) return false;
    if (each.owner != along) {
      result.add(each.owner, each);
      continue;
    }
    if (all || each.extent != run->count || each.stride != run->block) return false;
    all = true;
    result.add(each.owner, each.dim, each.extent, 1);
  }
  if (!all) return false;
  for (int d = 0; d < v.dims; ++d) {
    if (d == run->dim) continue;
    result.start[d] = v.start[d];
    result.beyond[d] = outside::unfilled(v.beyond[d]);
  }
  w.add(to, at.result(0), {run->before, w.number(result, run->before), {}});
  return true;
}

/// True if `b` is, for each element of `a`, the total of everything before its shard. `a` views
/// running sums of shards, and `b` views totals before them.
constexpr bool is_before(const view& a, const view& b, const meanings::running& run) {
  if (a.rank != b.rank || a.dims != b.dims) return false;
  for (int d = 0; d < a.dims; ++d) {
    const bool runs = d == run.dim;
    if (a.start[d] != (runs ? 0 : b.start[d]) ||
        (runs ? outside::turns(a.beyond[d]) || outside::turns(b.beyond[d])
              : outside::unfilled(a.beyond[d]) != outside::unfilled(b.beyond[d])))
      return false;
  }
  if (b.start[run.dim] != 0) return false;
  std::int64_t inside = 0;  // the last position in a shard
  int j = 0;
  for (int i = 0; i < a.count; ++i) {
    const digit& mine = a.digits[i];
    if (mine.dim == run.dim && mine.stride < run.block) {
      if (mine.stride < 0) return false;
      inside += (mine.extent - 1) * mine.stride;
      continue;
    }
    if (j == b.count) return false;
    const digit& other = b.digits[j++];
    const std::int64_t scale = mine.dim == run.dim ? run.block : 1;
    if (other.owner != mine.owner || other.dim != mine.dim || other.extent != mine.extent ||
        other.stride * scale != mine.stride)
      return false;
  }
  return j == b.count && inside < run.block;
}
/// Handles running sums of shards combined with the totals before them.
constexpr bool join_runs(workspace& w, const site& at, claim_list& to) {
  if (w.defining || w.chosen.size() != 2) return false;
  for (int i = 0; i < 2; ++i) {
    const claim &a = w.chosen[i], &b = w.chosen[1 - i];
    const meanings::running* const run = w.all.running_before(b.term);
    if (run == nullptr || !is_plain(a) || !is_plain(b)) continue;
    const auto attrs = w.all.terms.attrs(run->of);
    if (a.term != (attrs[2] != 0 ? run->without : run->with) ||
        at.def().id != combining_op(op::cumsum::combiner_of(attrs)).id ||
        !is_before(w.all.views[a.view], w.all.views[b.view], *run))
      continue;
    view v = w.all.views[a.view];
    for (int d = 0; d < v.dims; ++d) v.beyond[d] = outside::unfilled(v.beyond[d]);
    w.add(to, at.result(0), run->of, v, {});
    return true;
  }
  return false;
}

}  // namespace partita::prove_detail
