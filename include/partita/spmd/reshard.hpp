/// From one layout to another: which collectives, in which order.
///
/// Source    PartIR, section 6 (fusion of all_slice with all_gather)
#pragma once

#include <cstdint>

#include <partita/ir/collective.hpp>
#include <partita/spmd/passes.hpp>

namespace partita {

/// One collective of a change of layout: all_slice, all_to_all or all_gather.
struct reshard_step {
  collective what;
  layout after;       ///< how the value lies then
  bool last = false;  ///< nothing follows

  constexpr reshard_step() = default;
  constexpr reshard_step(collective::kind_type kind, const layout& axes, const layout& then,
                         bool is_last)
      : after(then), last(is_last) {
    what.kind = kind;
    what.axes = axes;
  }
};

namespace spmd_detail {

constexpr layout joined(layout a, const layout& b) {
  for (const auto& e : b) a.push_back(e.axis, e.dim);
  return a;
}
/// The axes of a dimension, major to minor; gives their number.
constexpr int axes_on(const layout& l, int dim, std::int8_t* axes) {
  int n = 0;
  std::uint64_t rest = l.packed;
  for (int i = 0; i < l.count; ++i, rest >>= 8)
    if (const layout::entry e = layout::unpacked(rest); e.dim == dim) axes[n++] = e.axis;
  return n;
}

/// What two layouts have in common (nothing, unless gathers and slices cancel), and what is to be
/// gathered and sliced between them.
struct layout_difference {
  layout keep, gather, slice;

  constexpr layout_difference(const layout& now, const layout& want, int rank, bool cancel) {
    for (int d = 0; d < rank; ++d) {
      std::int8_t has[max_axes] = {}, needs[max_axes] = {};
      const int n = axes_on(now, d, has), m = axes_on(want, d, needs);
      int common = 0;
      while (cancel && common < n && common < m && has[common] == needs[common]) ++common;
      for (int i = 0; i < common; ++i) keep.push_back(has[i], d);
      for (int i = common; i < n; ++i) gather.push_back(has[i], d);
      for (int i = common; i < m; ++i) slice.push_back(needs[i], d);
    }
  }
};

/// all_slice(all_gather(x)) => all_to_all: the innermost axes to be gathered from a dimension i
/// that are the next to slice another dimension j, if nothing of j itself is still to be gathered.
/// Gives false if there are none.
constexpr bool next_all_to_all(layout& keep, layout& gather, layout& slice, reshard_step& step) {
  for (const auto& s : slice) {
    const int j = s.dim, i = gather.dim_of(s.axis);
    std::int8_t from[max_axes] = {}, to[max_axes] = {}, own[max_axes] = {};
    if (i < 0 || i == j || axes_on(gather, j, own) > 0) continue;
    const int n = axes_on(gather, i, from), m = axes_on(slice, j, to);
    if (to[0] != s.axis) continue;
    int length = 0;  // of the longest end of `from` that `to` begins with
    for (int k = 1; k <= n && k <= m; ++k) {
      bool equal = true;
      for (int e = 0; e < k; ++e) equal = equal && from[n - k + e] == to[e];
      if (equal) length = k;
    }
    if (length == 0) continue;
    step = {};
    step.what.kind = collective::all_to_all;
    step.what.gathered = i;
    step.what.sliced = j;
    layout& moved = step.what.axes;
    for (int e = 0; e < length; ++e) moved.push_back(to[e], j);
    layout gather_left, slice_left;
    for (const auto& e : gather)
      if (moved.dim_of(e.axis) < 0) gather_left.push_back(e.axis, e.dim);
    for (const auto& e : slice)
      if (moved.dim_of(e.axis) < 0) slice_left.push_back(e.axis, e.dim);
    keep = joined(keep, moved);
    gather = gather_left;
    slice = slice_left;
    step.after = joined(keep, gather);
    step.last = gather.count == 0 && slice.count == 0;
    return true;
  }
  return false;
}

}  // namespace spmd_detail

/// Calls emit(step) for each collective that brings a value from layout `now` to layout `want`.
///
/// all_slice(all_gather(x)) => x           what both layouts share is never gathered
/// all_slice(all_gather(x)) => all_to_all  axes that move from one dimension to another
/// Slices that no gather stands in the way of come first: what is gathered is smaller then. Ends,
/// since every step settles at least one axis. The first two of these rules can be switched off.
///
/// Gives whether anything cancelled.
template <class Emit>
constexpr bool reshard(const layout& now, const layout& want, int rank, const passes& rules,
                       const Emit& emit) {
  auto [keep, gather, wanted] = spmd_detail::layout_difference(now, want, rank, rules.cancel);
  const bool cancelled = keep.count > 0;
  layout first, slice;
  bool blocked[max_rank] = {};  // dimensions that are gathered, or whose axes are in use elsewhere
  for (const auto& g : gather) blocked[g.dim] = true;
  for (const auto& s : wanted) {
    if (gather.dim_of(s.axis) >= 0) blocked[s.dim] = true;
    (blocked[s.dim] ? slice : first).push_back(s.axis, s.dim);
  }
  if (first.count > 0) {
    keep = spmd_detail::joined(keep, first);
    emit(reshard_step(collective::all_slice, first, spmd_detail::joined(keep, gather),
                      gather.count == 0));
  }
  reshard_step step;
  while (rules.to_all_to_all && spmd_detail::next_all_to_all(keep, gather, slice, step)) emit(step);
  if (gather.count > 0) emit(reshard_step(collective::all_gather, gather, keep, slice.count == 0));
  if (slice.count > 0)
    emit(reshard_step(collective::all_slice, slice, spmd_detail::joined(keep, slice), true));
  return cancelled;
}

}  // namespace partita
