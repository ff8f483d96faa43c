/// A list of numbers with two range operations: the maximum, and adding to all.
#pragma once

#include <cstdint>

#include <partita/support/vec.hpp>

namespace partita {

/// A segment tree over a list of numbers.
///
/// Cost      both operations are logarithmic in the length of the list
class range_maximum {
 public:
  constexpr explicit range_maximum(const vec<std::int64_t>& list) {
    while (leaves_ < list.size()) leaves_ *= 2;
    nodes_.resize(2 * leaves_, node{});
    for (std::size_t i = 0; i < list.size(); ++i) nodes_[leaves_ + i].most = list[i];
    for (std::size_t n = leaves_ - 1; n > 0; --n) find_most(n);
  }

  /// Returns the maximum over the non-empty range [first, last).
  constexpr std::int64_t most(int first, int last) {
    return most_in({1, 0, leaves_}, static_cast<std::size_t>(first),
                   static_cast<std::size_t>(last));
  }
  /// Adds `n` to each number in [first, last).
  constexpr void add(int first, int last, std::int64_t n) {
    add_in({1, 0, leaves_}, static_cast<std::size_t>(first), static_cast<std::size_t>(last), n);
  }
  /// Returns the number of nodes visited so far.
  constexpr std::int64_t work() const { return work_; }

 private:
  struct node {
    std::int64_t most = INT64_MIN;
    std::int64_t added = 0;  ///< added to all numbers below; already included in `most`
  };
  /// A node, and the range of the list that it covers.
  struct part {
    std::size_t node, begin, end;
    constexpr part left() const { return {2 * node, begin, begin + (end - begin) / 2}; }
    constexpr part right() const { return {2 * node + 1, begin + (end - begin) / 2, end}; }
  };
  vec<node> nodes_;  ///< by number: the children of n are 2 n and 2 n + 1
  std::size_t leaves_ = 1;
  std::int64_t work_ = 0;

  constexpr void find_most(std::size_t n) {
    const std::int64_t a = nodes_[2 * n].most, b = nodes_[2 * n + 1].most;
    nodes_[n].most = (a < b ? b : a) + nodes_[n].added;
  }
  constexpr std::int64_t most_in(part p, std::size_t first, std::size_t last) {
    ++work_;
    if (last <= p.begin || p.end <= first) return INT64_MIN;
    const node& here = nodes_[p.node];
    if (first <= p.begin && p.end <= last) return here.most;
    const std::int64_t a = most_in(p.left(), first, last), b = most_in(p.right(), first, last);
    return (a < b ? b : a) + here.added;
  }
  constexpr void add_in(part p, std::size_t first, std::size_t last, std::int64_t n) {
    ++work_;
    if (last <= p.begin || p.end <= first) return;
    if (first <= p.begin && p.end <= last) {
      nodes_[p.node].most += n;
      nodes_[p.node].added += n;
      return;
    }
    add_in(p.left(), first, last, n);
    add_in(p.right(), first, last, n);
    find_most(p.node);
  }
};

}  // namespace partita
