/// The pass that combines small all_reduces.
#pragma once

#include <cstdint>

#include <partita/ir/live_bytes.hpp>
#include <partita/spmd/rewrite.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// a = all_reduce(x), b = all_reduce(y) => a, b = all_reduce(x, y)
///
/// When: axes, combiner and element type agree, the operands together have at most `limit` bytes,
/// and all of them are computed before a kernel uses the first result. The one op runs as soon as
/// its last operand is computed. Kernels on which only results of the program depend, such as those
/// of an optimizer, run later if what they keep in memory raises its peak by at most 1 %. (The
/// results do not count: they can overwrite the operands.) Why: each message has a fixed cost. It
/// ends because each op is visited once.
class combining {
 public:
  /// `nested`: live_bytes::inside.
  constexpr combining(const program& p, const vec<std::int64_t>& nested, std::int64_t limit)
      : p_(p), nested_(nested), limit_(limit), late_(p.ops.size(), 1), joinable_(p.ops.size()) {}

  constexpr rewrite run() {
    rewrite w(p_);
    if (find_places() > 1) combine(w);
    if (w.changed > 0) order(w);
    return w;
  }

 private:
  /// For each op, a list of ops.
  struct lists {
    vec<op_id> first, next;
    constexpr explicit lists(std::size_t count) : first(count, -1), next(count, -1) {}
    constexpr void prepend(op_id of, op_id o) {
      next[o] = first[of];
      first[of] = o;
    }
  };
  /// All_reduces that are combined, after the op `after`.
  struct bucket {
    op_id first = -1, last = -1, after = -1;
    std::int64_t bytes = 0;
    /// Bytes that late kernels keep if they wait, and the most memory in use since the first.
    std::int64_t held = 0, high = 0;
    bool open = true;  ///< false once a result is used, by a kernel that is not late
  };
  const program& p_;
  const vec<std::int64_t>& nested_;
  std::int64_t limit_;
  vec<char> late_;   ///< by op: 1 if only results of the program depend on it
  lists joinable_;   ///< all_reduces by the op that they can follow
  vec<int> bucket_;  ///< by op: the bucket that it is in, or the last that a late kernel waits for
  vec<bucket> buckets_;

  /// Returns the number of all_reduces that can be combined.
  constexpr int find_places() {
    int count = 0;
    vec<int> uses(p_.types.size(), 0);
    for (value_id v : p_.operand_list) ++uses[v];
    for (const auto& out : p_.outputs) ++uses[out.value];
    for (op_id o = p_.op_count() - 1; o >= 0; --o) {
      if (p_.op(o).def->collective || p_.op(o).region_count > 0) late_[o] = 0;
      if (late_[o] == 0)
        for (value_id v : p_.operands(o)) late_[p_.producer(v)] = 0;
      if (!small(o) || uses[p_.op(o).result] == 0) continue;
      const value_id v = p_.operand(o, 0);
      const op_id made = p_.producer(v);
      const bool stays = uses[v] > 1 || small(made) || p_.is(made, op_role::parameter) ||
                         p_.op(made).def->fusion == fusion_kind::view;
      joinable_.prepend(stays ? o : made, o);
      ++count;
    }
    return count;
  }
  constexpr bool small(op_id o) const {
    return p_.is(o, collective::all_reduce) && p_.op(o).result_count == 1 && bytes(o) < limit_;
  }
  constexpr std::int64_t bytes(op_id o) const { return p_.type(p_.operand(o, 0)).bytes(); }
  constexpr bool alike(op_id a, op_id b) const {
    return same_elements(p_.attrs(a), p_.attrs(b)) &&
           p_.type(p_.operand(a, 0)).element == p_.type(p_.operand(b, 0)).element;
  }

  constexpr void combine(rewrite& w) {
    fused_kernels kernels(p_);
    const live_bytes live(p_, nested_, kernels);
    const std::int64_t most = with_tolerance(live.arguments, live.beyond_arguments());
    bucket_.resize(p_.ops.size(), -1);
    vec<int> open;  // buckets
    for (op_id o = 0; o < p_.op_count(); ++o) {
      // (A barrier runs nothing, but each of its results follows all of its operands.)
      if (kernels.runs(o) || p_.op(o).result_count > 1) use(kernels, live, o);
      std::size_t kept = 0;
      std::int64_t held = 0;
      for (int i : open) {
        bucket& b = buckets_[i];
        if (!b.open) continue;
        open[kept++] = i;
        held = saturating_add(held, b.held);
        if (b.held > 0 && live.during[o] > b.high) b.high = live.during[o];
      }
      open.resize(kept, -1);
      for (op_id a = joinable_.first[o]; a >= 0; a = joinable_.next[a])
        join(w, open, a, o, most - held);
    }
  }
  /// The peak without the arguments, if it may rise by 1 % (of all).
  static constexpr std::int64_t with_tolerance(std::int64_t arguments, std::int64_t others) {
    return saturating_add(others, saturating_add(arguments, others) / 100);
  }
  constexpr void use(fused_kernels& kernels, const live_bytes& live, op_id o) {
    int waits_for = -1;
    std::int64_t kept = 0;
    kernels.for_each_read(o, [&](value_id v) {
      const op_id made = p_.producer(v);
      if (live.last_use[v] == o && !p_.is(made, op_role::parameter))
        kept = saturating_add(kept, p_.type(v).bytes());
      const int b = bucket_[made];
      if (b < 0 || !buckets_[b].open) return;
      if (late_[o] != 0)
        waits_for = b;
      else
        buckets_[b].open = false;
    });
    if (waits_for < 0) return;
    bucket_[o] = waits_for;
    buckets_[waits_for].held = saturating_add(buckets_[waits_for].held, kept);
  }
  /// `most`: bytes that may be in use while late kernels wait.
  constexpr void join(rewrite& w, vec<int>& open, op_id a, op_id after, std::int64_t most) {
    int* found = nullptr;
    for (int& i : open)
      if (alike(buckets_[i].first, a)) found = &i;
    if (found != nullptr) {
      bucket& b = buckets_[*found];
      const std::int64_t together = saturating_add(b.bytes, bytes(a));
      if (together <= limit_ && b.high <= most) {
        w.next[b.last] = a;
        b = {b.first, a, after, together, b.held, b.high};
        bucket_[a] = *found;
        ++w.changed;
        return;
      }
      b.open = false;
    } else {
      open.push_back(-1);
      found = &open[open.size() - 1];
    }
    *found = bucket_[a] = static_cast<int>(buckets_.size());
    buckets_.push_back({a, a, after, bytes(a)});
  }

  /// The combined all_reduces that an op belongs to, or null.
  constexpr const bucket* combined(op_id o) const {
    const bucket* b = small(o) && bucket_[o] >= 0 ? &buckets_[bucket_[o]] : nullptr;
    return b != nullptr && b->first != b->last ? b : nullptr;
  }
  constexpr void order(rewrite& w) {
    vec<op_id> places = each_op(p_);  // by op: the op after which it runs, or itself
    lists after(p_.ops.size());       // combined all_reduces, then ops that wait for them
    for (op_id o = 0; o < p_.op_count(); ++o) {
      for (value_id v : p_.operands(o))
        if (const op_id made = places[p_.producer(v)]; made > places[o]) places[o] = made;
      if (const bucket* b = combined(o)) places[o] = b->after;
    }
    for (op_id o = p_.op_count() - 1; o >= 0; --o)
      if (places[o] > o && combined(o) == nullptr) after.prepend(places[o], o);
    for (std::size_t i = buckets_.size(); i-- > 0;)
      if (const bucket& b = buckets_[i]; b.first != b.last) after.prepend(b.after, b.first);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (places[o] == o && combined(o) == nullptr) w.order.push_back(o);
      for (op_id each = after.first[o]; each >= 0; each = after.next[each]) w.order.push_back(each);
    }
  }
};

}  // namespace partita::spmd_detail
