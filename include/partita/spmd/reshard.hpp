/// Converts one layout to another: selects the collectives and their order.
///
/// Source    PartIR, section 6 (fusion of all_slice with all_gather)
#pragma once

#include <cstdint>

#include <partita/ir/collective.hpp>
#include <partita/spmd/passes.hpp>
#include <partita/spmd/reshard_search.hpp>

namespace partita {

namespace spmd_detail {

/// The common part of two layouts (empty unless gathers and slices cancel), and the axes to gather
/// and to slice between them.
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

/// all_slice(all_gather(x)) => all_to_all: moves the innermost axes to be gathered from dimension i
/// to another dimension j, if they are the next to slice j and j itself needs no more gathers.
/// Returns false if no axes qualify.
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

/// The conversion that needs no search. Slices that are possible at once come first, because they
/// are free and make everything after them smaller; then exchanges between dimensions, then
/// gathers, then the remaining slices.
struct plain_way {
  layout common;  ///< the common part of both layouts
  layout keep, gather, slice, first;

  constexpr plain_way(const layout& now, const layout& want, int rank, bool cancel) {
    const layout_difference d(now, want, rank, cancel);
    keep = common = d.keep;
    gather = d.gather;
    bool blocked[max_rank] =
        {};  // dimensions that are gathered, or whose axes are in use elsewhere
    for (const auto& g : gather) blocked[g.dim] = true;
    for (const auto& s : d.slice) {
      if (gather.dim_of(s.axis) >= 0) blocked[s.dim] = true;
      (blocked[s.dim] ? slice : first).push_back(s.axis, s.dim);
    }
  }
  /// True if no other sequence sends less: there is at most one exchange, of shards that are as
  /// small as possible.
  constexpr bool is_best() const {
    if (gather.count == 0 || slice.count == 0) return true;
    layout k = keep, g = gather, s = slice;
    reshard_step step;
    return next_all_to_all(k, g, s, step) && g.count == 0 && s.count == 0;
  }
  template <class Emit>
  constexpr void go(bool to_all_to_all, const Emit& emit) {
    if (first.count > 0) {
      keep = joined(keep, first);
      emit(reshard_step(collective::all_slice, first, joined(keep, gather), gather.count == 0));
    }
    reshard_step step;
    while (to_all_to_all && next_all_to_all(keep, gather, slice, step)) emit(step);
    if (gather.count > 0)
      emit(reshard_step(collective::all_gather, gather, keep, slice.count == 0));
    if (slice.count > 0)
      emit(reshard_step(collective::all_slice, slice, joined(keep, slice), true));
  }
};

}  // namespace spmd_detail

/// A cache of the most recent searches, because programs repeat the same conversions.
class known_ways {
 public:
  /// The cheapest sequence of steps, found by a search.
  constexpr const vec<reshard_step>& find(spmd_detail::plain_way plain, const layout& now,
                                          const layout& want, const tensor_type& type,
                                          const mesh& m) {
    const std::size_t devices = static_cast<std::size_t>(m.devices());
    for (const entry& each : list_)
      if (each.now == now && each.want == want && each.type == type && each.axes == m.rank &&
          each.devices == devices)
        return each.way;
    if (list_.size() < most) list_.push_back({});
    entry& e = list_[next_];
    next_ = (next_ + 1) % most;
    e = {now, want, type, m.rank, devices, {}};
    plain.go(true, [&](const reshard_step& s) { e.way.push_back(s); });
    spmd_detail::reshard_search(now, want, plain.common, type, m).improve(e.way);
    return e.way;
  }

 private:
  static constexpr std::size_t most = 32;
  struct entry {
    layout now, want;
    tensor_type type = {};
    int axes = 0;
    std::size_t devices = 0;
    vec<reshard_step> way;
  };
  vec<entry> list_;
  std::size_t next_ = 0;
};

/// Calls emit(step) for each collective that converts a value of this type from layout `now` to
/// layout `want`. Minimizes the bytes that a device sends, then the largest shard on the way.
///
/// all_slice(all_gather(x)) => x           the common part of both layouts is never gathered
/// all_slice(all_gather(x)) => all_to_all  axes that move from one dimension to another
/// all_slice(all_gather(x)) => permute     shards of the same size before and after
///
/// The first two rules can be switched off; if either is off, the third is not used and the plain
/// conversion is taken. Most conversions are plain; others are found by a search.
///
/// Returns true if anything cancelled.
template <class Emit>
constexpr bool reshard(const layout& now, const layout& want, const tensor_type& type,
                       const mesh& m, const passes& rules, known_ways& ways, const Emit& emit) {
  spmd_detail::plain_way plain(now, want, type.shape.rank, rules.cancel);
  const bool cancelled = plain.common.count > 0;
  if (!rules.cancel || !rules.to_all_to_all || plain.is_best())
    plain.go(rules.to_all_to_all, emit);
  else
    for (const reshard_step& s : ways.find(plain, now, want, type, m)) emit(s);
  return cancelled;
}
template <class Emit>
constexpr bool reshard(const layout& now, const layout& want, const tensor_type& type,
                       const mesh& m, const passes& rules, const Emit& emit) {
  known_ways ways;
  return reshard(now, want, type, m, rules, ways, emit);
}

}  // namespace partita
