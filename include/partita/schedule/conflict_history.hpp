/// The conflicts that were unresolved after each tactic of a schedule.
#pragma once

#include <partita/core/core_program.hpp>
#include <partita/support/vec.hpp>

namespace partita::schedule_detail {

/// Replays the log of conflict changes from its beginning.
///
/// Cost      linear in the program and the log
class conflict_history {
 public:
  constexpr explicit conflict_history(const core_program& c)
      : log_(c.conflict_changes), ranks_(log_.size()), rank_(log_.size(), 0) {
    vec<int> first(c.p.ops.size(), -1), next(log_.size(), -1);  // those found at an op
    for (std::size_t i = log_.size(); i-- > 0;) {
      if (!log_[i].found) continue;
      next[i] = first[log_[i].what.op];
      first[log_[i].what.op] = static_cast<int>(i);
    }
    for (op_id o : c.order)
      for (int a = 0; a < c.mesh.rank && first[o] >= 0; ++a)
        for (int i = first[o]; i >= 0; i = next[i]) {
          if (c.mesh.parts_of(log_[i].what.where()).axes[0] != c.mesh.order[a]) continue;
          rank_[i] = static_cast<int>(in_order_.size());
          in_order_.push_back(i);
        }
    open_.resize(c.p.ops.size(), -1);
    next_open_.resize(log_.size(), -1);
  }

  /// Advances to the state after this number of changes, which must not be smaller than the current
  /// one.
  constexpr void advance(int changes) {
    for (; done_ < changes; ++done_) {
      const conflict& k = log_[done_].what;
      int* link = &open_[k.op];
      if (log_[done_].found) {
        next_open_[done_] = *link;
        *link = done_;
        is_open_.insert(ranks_, rank_[done_]);
        continue;
      }
      while (!(log_[*link].what == k)) link = &next_open_[*link];
      is_open_.erase(rank_[*link]);
      *link = next_open_[*link];
    }
  }
  /// Calls f(conflict) for the first `limit` open conflicts, in execution order.
  template <class F>
  constexpr void for_each(int limit, const F& f) const {
    for (int r = is_open_.first_from(0); r >= 0 && limit-- > 0; r = is_open_.first_from(r + 1))
      f(log_[in_order_[r]].what);
  }

 private:
  const vec<conflict_change>& log_;
  op_order ranks_;      ///< of the changes that found a conflict, in execution order
  vec<int> rank_;       ///< by change
  vec<int> in_order_;   ///< by rank: its change
  vec<int> open_;       ///< by op: the change of its most recently found open conflict, or -1
  vec<int> next_open_;  ///< by change: an earlier one of the op
  op_set is_open_;      ///< by rank
  int done_ = 0;
};

}  // namespace partita::schedule_detail
