/// Conflicts in execution order, updated op by op.
#pragma once

#include <cstddef>

#include <partita/core/loops.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A conflict that appeared or was resolved.
struct conflict_change {
  conflict what;
  /// True if the conflict appeared, false if it was resolved.
  bool found = true;
};

/// The open conflicts; those of one op are adjacent.
class conflict_list {
  struct node {
    conflict what;
    int previous = -1, next = -1;
  };

 public:
  class iterator {
   public:
    constexpr iterator(const node* nodes, int at) : nodes_(nodes), at_(at) {}
    constexpr const conflict& operator*() const { return nodes_[at_].what; }
    constexpr iterator& operator++() {
      at_ = nodes_[at_].next;
      return *this;
    }
    constexpr bool operator!=(const iterator& other) const { return at_ != other.at_; }

   private:
    const node* nodes_;
    int at_;
  };

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr iterator begin() const { return {nodes_.data(), first_}; }
  constexpr iterator end() const { return {nodes_.data(), -1}; }
  /// Cost: i steps.
  constexpr const conflict& operator[](std::size_t i) const {
    int at = first_;
    while (i-- > 0) at = nodes_[at].next;
    return nodes_[at].what;
  }
  /// Calls f(conflict) for each conflict of one op.
  template <class F>
  constexpr void for_each_of(op_id o, const F& f) const {
    for (int at = first_of(o); is_of(at, o); at = nodes_[at].next) f(nodes_[at].what);
  }

  /// Replaces the conflicts of op `o` by `now` and appends the differences to `log`. `previous` is
  /// the last op before `o` that has conflicts, or -1. Cost: linear in the op's conflicts.
  constexpr void replace(op_id o, op_id previous, vec<conflict> now, vec<conflict_change>& log) {
    const std::size_t logged = log.size();
    for_each_of(o, [&](const conflict& old) {
      bool stays = false;
      for (auto& each : now)
        if (each == old) {
          each.tactic = old.tactic;
          stays = true;
        }
      if (!stays) log.push_back({old, false});
    });
    for (const auto& each : now) {
      bool known = false;
      for_each_of(o, [&](const conflict& old) { known = known || each == old; });
      if (!known) log.push_back({each, true});
    }
    if (log.size() == logged) return;
    for (int at = first_of(o); is_of(at, o);) {
      const int next = nodes_[at].next;
      remove(at);
      at = next;
    }
    int last = previous < 0 ? -1 : first_of(previous);
    while (last >= 0 && is_of(nodes_[last].next, previous)) last = nodes_[last].next;
    if (static_cast<std::size_t>(o) >= first_of_.size())
      first_of_.resize(static_cast<std::size_t>(o) + 1, -1);
    first_of_[o] = -1;
    for (const auto& each : now) {
      last = insert(each, last);
      if (first_of_[o] < 0) first_of_[o] = last;
    }
  }

 private:
  vec<node> nodes_;
  vec<int> unused_;    ///< indices of free elements of `nodes_`
  vec<int> first_of_;  ///< by op: the index of its first conflict, or -1
  int first_ = -1;
  std::size_t size_ = 0;

  constexpr int first_of(op_id o) const {
    return static_cast<std::size_t>(o) < first_of_.size() ? first_of_[o] : -1;
  }
  constexpr bool is_of(int at, op_id o) const { return at >= 0 && nodes_[at].what.op == o; }
  constexpr int& link_after(int at) { return at < 0 ? first_ : nodes_[at].next; }
  /// Inserts a conflict after number `previous` (-1: at the front) and returns its number.
  constexpr int insert(const conflict& k, int previous) {
    int at = static_cast<int>(nodes_.size());
    if (unused_.empty()) {
      nodes_.push_back({});
    } else {
      at = unused_.back();
      unused_.pop_back();
    }
    const int next = link_after(previous);
    nodes_[at] = {k, previous, next};
    link_after(previous) = at;
    if (next >= 0) nodes_[next].previous = at;
    ++size_;
    return at;
  }
  constexpr void remove(int at) {
    const node n = nodes_[at];
    link_after(n.previous) = n.next;
    if (n.next >= 0) nodes_[n.next].previous = n.previous;
    unused_.push_back(at);
    --size_;
  }
};

}  // namespace partita
