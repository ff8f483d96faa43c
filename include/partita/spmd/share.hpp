/// The pass that shares gathers.
#pragma once

#include <cstdint>

#include <partita/ir/live_bytes.hpp>
#include <partita/spmd/rewrite.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/range_maximum.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// a = all_gather(x), ..., b = all_gather(x) => a for b
///
/// (x, or what x becomes by reshapes, transposes and reverses: see lift_gathers.hpp.)
///
/// When: both gather the same axes of the same dimensions, and live memory between the last use of
/// a and b stays at or below the bound; where that last use writes its result over a, at it, too.
/// Pairs with the fewest ops in between come first. (It is computed from above: that the second
/// operand may die earlier is not counted.) An op that reads a and b reads one value then, which
/// other kernels may compute again; where the peak rises above the bound so, the first pairs count
/// with which it does not. Why: half the communication, for memory. It ends since each pair is
/// visited once, and that many pairs are found by halves.
class sharing {
 public:
  static constexpr std::int64_t no_bound = INT64_MAX;

  /// `nested`: live_bytes::inside; not looked at without a bound.
  constexpr sharing(const program& p, std::int64_t bound, const vec<std::int64_t>& nested)
      : p_(p), bound_(bound), nested_(nested) {}

  constexpr rewrite run() {
    find_pairs();
    if (bound_ == no_bound) return without(pairs_.size());
    take_what_fits();
    rewrite all = without(pairs_.size());
    return all.changed == 0 || is_within_bound(all) ? static_cast<rewrite&&>(all) : fewer();
  }

 private:
  /// A gather, and the next one that gives the same.
  struct pair {
    op_id first = -1, second = -1;
    int wait = 0;  ///< ops in between
  };
  const program& p_;
  std::int64_t bound_;
  const vec<std::int64_t>& nested_;
  vec<pair> pairs_;  ///< those to share, the first to come first
  vec<pair> in_program_order_;

  constexpr void find_pairs() {
    vec<op_id> latest(p_.types.size(), -1);  // by value: the last op so far that gathers it
    vec<op_id> previous(p_.ops.size(), -1);  // by gather: the one before of the same value
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (!p_.is(o, collective::all_gather)) continue;
      const value_id x = p_.operand(o, 0);
      op_id before = previous[o] = latest[x];
      latest[x] = o;
      while (before >= 0 && !same_elements(p_.attrs(before), p_.attrs(o)))
        before = previous[before];
      if (before >= 0) pairs_.push_back({before, o, 0});
    }
    in_program_order_ = pairs_;
  }
  /// The first `count` pairs shared.
  constexpr rewrite without(std::size_t count) const {
    vec<char> dropped(p_.ops.size(), 0);
    for (std::size_t i = 0; i < count; ++i) dropped[pairs_[i].second] = 1;
    rewrite w(p_);
    vec<op_id> kept(p_.ops.size(), -1);  // by gather: the one that stands for it
    for (const pair& each : in_program_order_) {
      const op_id stands = kept[each.first] >= 0 ? kept[each.first] : each.first;
      if (!dropped[each.second]) continue;
      kept[each.second] = stands;
      w.replaced[p_.op(each.second).result] = p_.op(stands).result;
      ++w.changed;
    }
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (!dropped[o]) w.order.push_back(o);
    return w;
  }
  constexpr bool is_within_bound(const rewrite& w) const {
    return live_bytes(rewritten_alone(p_, w), rewritten(nested_, w)).peak() <= bound_;
  }
  /// As many of the first pairs as are found by halves to stay at or below the bound.
  constexpr rewrite fewer() const {
    rewrite best = without(0);
    std::size_t most = 0, too_many = pairs_.size();
    while (too_many - most > 1) {
      const std::size_t middle = most + (too_many - most) / 2;
      rewrite w = without(middle);
      if (!is_within_bound(w)) {
        too_many = middle;
      } else {
        most = middle;
        best = static_cast<rewrite&&>(w);
      }
    }
    return best;
  }
  constexpr void take_what_fits() {
    const live_bytes live(p_, nested_);
    sort_by_wait(live);
    range_maximum during(live.during);
    vec<pair> taken;
    for (const pair& each : pairs_)
      if (fits(each, live, during)) taken.push_back(each);
    pairs_ = static_cast<vec<pair>&&>(taken);
  }
  constexpr op_id last_use(const pair& each, const live_bytes& live) const {
    return live.last_use[p_.op(each.first).result];
  }
  /// Stable, by counting.
  constexpr void sort_by_wait(const live_bytes& live) {
    vec<int> begin(p_.ops.size() + 2, 0);
    for (pair& each : pairs_) {
      const int wait = each.second - last_use(each, live);
      each.wait = wait > 0 ? wait : 0;
      ++begin[each.wait + 1];
    }
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    vec<pair> sorted(pairs_.size(), pair{});
    for (const pair& each : pairs_) sorted[begin[each.wait]++] = each;
    pairs_ = static_cast<vec<pair>&&>(sorted);
  }
  /// Is there room to keep the first value until the second is made? Then it is taken.
  constexpr bool fits(const pair& each, const live_bytes& live, range_maximum& during) const {
    const value_id kept = p_.op(each.first).result;
    const std::int64_t bytes = p_.type(kept).bytes();
    const op_id from = last_use(each, live) + (live.overwritten[kept] != 0 ? 0 : 1);
    if (from >= each.second) return true;
    const std::int64_t most = during.most(from, each.second);
    if (saturating_add(saturating_add(live.arguments, most), bytes) > bound_) return false;
    during.add(from, each.second, bytes);
    return true;
  }
};

}  // namespace partita::spmd_detail
