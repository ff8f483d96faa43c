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
/// and all of them are computed before the first result is used. The one op runs as soon as its
/// last operand is computed. Uses on which only results of the program depend, such as those of an
/// optimizer, do not count; they run later, if that does not raise the peak of live memory. Why:
/// each message has a fixed cost. An all_reduce overwrites its operand and thus takes no memory; if
/// the operand has other uses, it does not move to an earlier place. It ends because each op is
/// visited once.
class combining {
 public:
  constexpr combining(const program& p, std::int64_t limit)
      : p_(p), limit_(limit), late_(p.ops.size(), 1), joinable_(p.ops.size()) {}

  constexpr rewrite run() {
    find_places();
    rewrite w = combined();
    if (!delays_) return w;
    const live_bytes live(p_);
    if (live_bytes(rewritten_alone(p_, w), rewritten(live.inside, w)).beyond_arguments() <=
        live.beyond_arguments())
      return w;
    for (char& each : late_) each = 0;
    return combined();
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
    bool open = true;  ///< false once a result is used
  };
  const program& p_;
  std::int64_t limit_;
  vec<char> late_;   ///< by op: 1 if only results of the program depend on it
  lists joinable_;   ///< all_reduces by the op that they can follow
  vec<int> bucket_;  ///< by op
  vec<bucket> buckets_;
  bool delays_ = false;

  constexpr void find_places() {
    vec<int> uses(p_.types.size(), 0);
    for (value_id v : p_.operand_list) ++uses[v];
    for (const auto& out : p_.outputs) ++uses[out.value];
    for (op_id o = p_.op_count() - 1; o >= 0; --o) {
      if (p_.op(o).def->collective || p_.op(o).region_count > 0) late_[o] = 0;
      if (late_[o] == 0)
        for (value_id v : p_.operands(o)) late_[p_.producer(v)] = 0;
      if (!small(o)) continue;
      const value_id v = p_.operand(o, 0);
      const op_id made = p_.producer(v);
      const bool stays = uses[v] > 1 || small(made) || p_.is(made, op_role::parameter);
      joinable_.prepend(stays ? o : made, o);
    }
  }
  constexpr bool small(op_id o) const {
    return p_.is(o, collective::all_reduce) && p_.op(o).result_count == 1 && bytes(o) < limit_;
  }
  constexpr std::int64_t bytes(op_id o) const { return p_.type(p_.operand(o, 0)).bytes(); }
  constexpr bool alike(op_id a, op_id b) const {
    return same_elements(p_.attrs(a), p_.attrs(b)) &&
           p_.type(p_.operand(a, 0)).element == p_.type(p_.operand(b, 0)).element;
  }

  constexpr rewrite combined() {
    rewrite w(p_);
    bucket_ = vec<int>(p_.ops.size(), -1);
    buckets_.clear();
    vec<int> open;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (late_[o] == 0)
        for (value_id v : p_.operands(o))
          if (const int b = bucket_[p_.producer(v)]; b >= 0) buckets_[b].open = false;
      for (op_id a = joinable_.first[o]; a >= 0; a = joinable_.next[a]) join(w, open, a, o);
    }
    if (w.changed > 0) order(w);
    return w;
  }
  constexpr void join(rewrite& w, vec<int>& open, op_id a, op_id after) {
    std::size_t kept = 0;
    for (int i : open)
      if (buckets_[i].open) open[kept++] = i;
    open.resize(kept, -1);
    int* found = nullptr;
    for (int& i : open)
      if (alike(buckets_[i].first, a)) found = &i;
    if (found != nullptr && saturating_add(buckets_[*found].bytes, bytes(a)) <= limit_) {
      bucket& b = buckets_[*found];
      w.next[b.last] = a;
      b = {b.first, a, after, b.bytes + bytes(a)};
      bucket_[a] = *found;
      ++w.changed;
      return;
    }
    bucket_[a] = static_cast<int>(buckets_.size());
    buckets_.push_back({a, a, after, bytes(a)});
    if (found != nullptr)
      *found = bucket_[a];
    else
      open.push_back(bucket_[a]);
  }

  /// Returns the op after which an op runs: itself, or a later one.
  constexpr op_id place(op_id o, const vec<op_id>& places) const {
    if (const bucket* b = combined_with(o)) return b->after;
    op_id last = o;
    for (value_id v : p_.operands(o))
      if (const op_id made = places[p_.producer(v)]; made > last) last = made;
    return last;
  }
  constexpr const bucket* combined_with(op_id o) const {
    const bucket* b = bucket_[o] < 0 ? nullptr : &buckets_[bucket_[o]];
    return b != nullptr && b->first != b->last ? b : nullptr;
  }
  constexpr void order(rewrite& w) {
    vec<op_id> places(p_.ops.size(), -1);
    lists after(p_.ops.size());  // combined all_reduces, then ops that are delayed
    for (op_id o = 0; o < p_.op_count(); ++o) places[o] = place(o, places);
    for (op_id o = p_.op_count() - 1; o >= 0; --o)
      if (places[o] > o && combined_with(o) == nullptr) {
        after.prepend(places[o], o);
        delays_ = true;
      }
    for (std::size_t i = buckets_.size(); i-- > 0;)
      if (const bucket& b = buckets_[i]; b.first != b.last) after.prepend(b.after, b.first);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (places[o] == o && combined_with(o) == nullptr) w.order.push_back(o);
      for (op_id each = after.first[o]; each >= 0; each = after.next[each]) w.order.push_back(each);
    }
  }
};

}  // namespace partita::spmd_detail
