/// The pass that combines small all_reduces.
#pragma once

#include <cstdint>

#include <partita/spmd/rewrite.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// a = all_reduce(x), b = all_reduce(y) => a, b = all_reduce(x, y)
///
/// When: axes, combiner and element type agree, the operands together have at most `limit` bytes,
/// and the longest path to a contains as many small all_reduces as the longest path to b. No path
/// connects all_reduces of equal depth, so that combining any number of them creates no cycle. Why:
/// each message has a fixed cost. It ends because each op is visited once.
class combining {
 public:
  constexpr combining(const program& p, std::int64_t limit)
      : p_(p),
        limit_(limit),
        first_(each_op(p)),
        last_(each_op(p)),
        depth_(p.ops.size(), 0),
        newest_(p.ops.size(), -1) {}

  constexpr rewrite run() {
    rewrite w(p_);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      for (value_id v : p_.operands(o)) {
        const op_id before = p_.producer(v);
        const int depth = depth_[before] + (small(before) ? 1 : 0);
        if (depth > depth_[o]) depth_[o] = depth;
      }
      if (small(o)) join(w, o);
    }
    if (w.changed > 0) order(w);
    return w;
  }

 private:
  struct bucket {
    op_id first = -1, last = -1;
    std::int64_t bytes = 0;
    int earlier = -1;  ///< the previous bucket of the same depth
  };
  const program& p_;
  std::int64_t limit_;
  vec<op_id> first_;  ///< by op: the first of the ops it is combined with
  vec<op_id> last_;   ///< by first op: the last op it is combined with
  vec<int> depth_;    ///< by op: the number of small all_reduces on the longest path to it
  vec<bucket> open_;  ///< buckets to which ops may be added
  vec<int> newest_;   ///< by depth: the last open bucket, or -1

  constexpr std::int64_t bytes(op_id o) const {
    std::int64_t n = 0;
    for (value_id v : p_.operands(o)) n = saturating_add(n, p_.type(v).bytes());
    return n;
  }
  constexpr bool small(op_id o) const {
    return p_.is(o, collective::all_reduce) && p_.op(o).result_count == 1 && bytes(o) < limit_;
  }
  /// True if two all_reduces of equal depth can be combined.
  constexpr bool alike(op_id a, op_id b) const {
    return same_elements(p_.attrs(a), p_.attrs(b)) &&
           p_.type(p_.operand(a, 0)).element == p_.type(p_.operand(b, 0)).element;
  }

  constexpr void join(rewrite& w, op_id o) {
    int& newest = newest_[depth_[o]];
    for (int i = newest; i >= 0; i = open_[i].earlier) {
      bucket& b = open_[i];
      if (!alike(b.first, o)) continue;
      const std::int64_t together = saturating_add(b.bytes, bytes(o));
      if (together > limit_) {
        b = {o, o, bytes(o), b.earlier};
        return;
      }
      w.next[b.last] = o;
      first_[o] = b.first;
      last_[b.first] = b.last = o;
      b.bytes = together;
      ++w.changed;
      return;
    }
    open_.push_back({o, o, bytes(o), newest});
    newest = static_cast<int>(open_.size()) - 1;
  }

  /// Orders the ops. Each op keeps its place or, if it uses the result of combined ops, moves to
  /// the place of the last of them; ops with the same place keep their order.
  constexpr void order(rewrite& w) const {
    vec<int> place(p_.ops.size(), 0), ops_at(p_.ops.size() + 1, 0);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      place[o] = o;
      for (value_id v : p_.operands(o)) {
        const op_id before = p_.producer(v);
        for (const int earliest : {place[before], last_[first_[before]]})
          if (earliest > place[o]) place[o] = earliest;
      }
      ++ops_at[place[o] + 1];
    }
    for (op_id o = 0; o < p_.op_count(); ++o) ops_at[o + 1] += ops_at[o];
    vec<op_id> sorted(p_.ops.size(), -1);
    for (op_id o = 0; o < p_.op_count(); ++o) sorted[ops_at[place[o]]++] = o;
    ordering list(p_, w, first_);
    // The first of several is added when the last one, or a user, is.
    for (op_id o : sorted)
      if (last_[first_[o]] == first_[o] || last_[first_[o]] == o) list.add(o);
  }
};

}  // namespace partita::spmd_detail
