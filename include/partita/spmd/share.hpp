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
/// a and b stays at or below the bound. Pairs with the fewest ops in between come first. (It is
/// computed from above: that the second operand may die earlier is not counted.) Why: half the
/// communication, for memory. It ends since each pair is visited once.
class sharing {
 public:
  static constexpr std::int64_t no_bound = INT64_MAX;

  /// `nested`: live_bytes::inside; not looked at without a bound.
  constexpr sharing(const program& p, std::int64_t bound, const vec<std::int64_t>& nested)
      : p_(p), bound_(bound), nested_(nested) {}

  constexpr rewrite run() {
    rewrite w(p_);
    find_pairs();
    vec<char> dropped(p_.ops.size(), 0);
    if (bound_ == no_bound) {
      for (const pair& each : pairs_) dropped[each.second] = 1;
    } else {
      const live_bytes live(p_, nested_);
      sort_by_wait(live);
      range_maximum during(live.during);
      for (const pair& each : pairs_) dropped[each.second] = fits(each, live, during);
    }
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

 private:
  /// A gather, and the next one that gives the same.
  struct pair {
    op_id first = -1, second = -1;
    int wait = 0;  ///< ops in between
  };
  const program& p_;
  std::int64_t bound_;
  const vec<std::int64_t>& nested_;
  vec<pair> pairs_, in_program_order_;

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
    const std::int64_t bytes = p_.type(p_.op(each.first).result).bytes();
    const op_id from = last_use(each, live) + 1;
    if (from >= each.second) return true;
    const std::int64_t most = during.most(from, each.second);
    if (saturating_add(saturating_add(live.arguments, most), bytes) > bound_) return false;
    during.add(from, each.second, bytes);
    return true;
  }
};

}  // namespace partita::spmd_detail
