/// The pass that shares gathers.
#pragma once

#include <cstdint>

#include <partita/ir/live_bytes.hpp>
#include <partita/spmd/passes.hpp>
#include <partita/spmd/rewrite.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/range_maximum.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// Finds gathers whose uses are adjacent. A gather belongs to the first op that reads it.
///
/// Uses are adjacent if no other value is gathered between them, and no nested program, which could
/// gather, is between them. They are alike if they are the same op with the value at the same
/// operand, and different other operands. Examples are x wq, x wk and x wv, or the gradients of
/// these weights: they are one product with a larger matrix, written as several, and should gather
/// x as often as that product. In contrast, a gradient dy that is used for the gradient of the
/// weights (h dy) and of the input (dy w) has two unlike uses.
///
/// Cost: linear in ops.
class gather_uses {
 public:
  constexpr explicit gather_uses(const program& p) : p_(p), number_(p.ops.size(), -1) {
    vec<op_id> reader(p.types.size(), -1);  // by value: the first op that reads it
    for (op_id o = p.op_count(); o-- > 0;)
      for (value_id v : p.operands(o)) reader[v] = o;
    reader_.resize(p.ops.size(), -1);
    int number = 0;
    op_id latest = -1;
    for (op_id o = 0; o < p.op_count(); ++o) {
      if (p.op(o).region_count > 0) {
        ++number;
        latest = -1;
      }
      if (!p.is(o, collective::all_gather)) continue;
      reader_[o] = reader[p.op(o).result];
      if (reader_[o] < 0 || reader_[o] != latest) ++number;
      latest = reader_[o];
      number_[o] = number;
    }
  }
  /// True if two gathers of the same value in the same way may share. `a` must come first.
  constexpr bool may_share(op_id a, op_id b, shared_uses which) const {
    if (which == shared_uses::all) return true;
    if (which == shared_uses::none || number_[b] - number_[a] > 1 || reader_[b] < 0) return false;
    return which == shared_uses::neighbours || (reader_[a] >= 0 && alike(a, b));
  }

 private:
  const program& p_;
  vec<op_id> reader_;  ///< by gather: the op it belongs to, or -1
  vec<int> number_;    ///< by gather: equal for gathers that belong to one op; increasing

  constexpr bool alike(op_id a, op_id b) const {
    const op_id f = reader_[a], g = reader_[b];
    return p_.op(f).def == p_.op(g).def && p_.op(f).operand_count == p_.op(g).operand_count &&
           same_elements(p_.attrs(f), p_.attrs(g)) && place(a) == place(b);
  }
  /// The index of the gathered value among the operands of the op it belongs to.
  constexpr int place(op_id gather) const {
    const auto operands = p_.operands(reader_[gather]);
    int i = 0;
    while (operands[static_cast<std::size_t>(i)] != p_.op(gather).result) ++i;
    return i;
  }
};

/// Calls f(gather, the next gather with the same result) for each pair whose uses may share.
template <class F>
constexpr void for_each_shared_pair(const program& p, shared_uses which, const F& f) {
  if (which == shared_uses::none) return;
  vec<op_id> latest(p.types.size(), -1);  // by value: the last op so far that gathers it
  vec<op_id> previous(p.ops.size(), -1);  // by gather: the previous one of the same value
  bool again = false;
  for (op_id o = 0; o < p.op_count(); ++o) {
    if (!p.is(o, collective::all_gather)) continue;
    previous[o] = latest[p.operand(o, 0)];
    latest[p.operand(o, 0)] = o;
    again = again || previous[o] >= 0;
  }
  if (!again) return;
  const gather_uses uses(p);
  for (op_id o = 0; o < p.op_count(); ++o) {
    op_id before = previous[o];
    while (before >= 0 && !same_elements(p.attrs(before), p.attrs(o))) before = previous[before];
    if (before >= 0 && uses.may_share(before, o, which)) f(before, o);
  }
}

/// True if the program or its nested programs have gathers to share. Cost: linear in ops.
constexpr bool has_shared_pair(const program& p, shared_uses which) {
  bool found = false;
  for_each_shared_pair(p, which, [&](op_id, op_id) { found = true; });
  for (const program& inside : p.regions) found = found || has_shared_pair(inside, which);
  return found;
}

/// a = all_gather(x), ..., b = all_gather(x) => a for b
///
/// (If all uses share, x may also be reshaped, transposed or reversed before: see
/// lift_gathers.hpp.)
///
/// When: both gather the same axes of the same dimensions, their uses may share (see gather_uses),
/// and live memory between the last use of a and b stays at or below the bound; at the last use of
/// a too, if its result would overwrite a. Pairs with the fewest ops in between come first. The
/// memory is an upper bound: an earlier end of the second operand is not counted. An op that reads
/// a and b then reads a single value, which other kernels may recompute. If the peak exceeds the
/// bound for that reason, only as many of the first pairs are shared as keep it. Why: it
/// halves the communication at the expense of memory. It ends because each pair is visited once and
/// the number of pairs is found by bisection.
class sharing {
 public:
  static constexpr std::int64_t no_bound = INT64_MAX;

  /// `nested`: live_bytes::inside; unused without a bound.
  constexpr sharing(const program& p, shared_uses which, std::int64_t bound,
                    const vec<std::int64_t>& nested)
      : p_(p), which_(which), bound_(bound), nested_(nested) {}

  constexpr rewrite run() {
    find_pairs();
    if (bound_ == no_bound) return without(pairs_.size());
    take_what_fits();
    rewrite all = without(pairs_.size());
    if (all.changed == 0 || is_within_bound(all)) return all;
    return fewer();
  }

 private:
  /// A gather, and the next gather with the same result.
  struct pair {
    op_id first = -1, second = -1;
    int wait = 0;  ///< the number of ops in between
  };
  const program& p_;
  shared_uses which_;
  std::int64_t bound_;
  const vec<std::int64_t>& nested_;
  vec<pair> pairs_;  ///< the pairs to share, best first
  vec<pair> in_program_order_;

  constexpr void find_pairs() {
    for_each_shared_pair(p_, which_, [&](op_id a, op_id b) { pairs_.push_back({a, b, 0}); });
    in_program_order_ = pairs_;
  }
  /// The rewrite that shares the first `count` pairs.
  constexpr rewrite without(std::size_t count) const {
    vec<char> dropped(p_.ops.size(), 0);
    for (std::size_t i = 0; i < count; ++i) dropped[pairs_[i].second] = 1;
    rewrite w(p_);
    vec<op_id> kept(p_.ops.size(), -1);  // by gather: its replacement
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
  /// Shares as many of the first pairs as bisection finds to stay at or below the bound.
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
  /// A stable counting sort.
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
  /// True if there is room to keep the first value until the second is produced; then reserves it.
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
