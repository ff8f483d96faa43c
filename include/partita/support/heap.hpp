/// A priority queue.
#pragma once

#include <cstddef>

#include <partita/support/vec.hpp>

namespace partita {

/// A queue that returns its minimum first, and equal elements in any order.
///
/// Cost      push and pop are logarithmic in the number of elements
/// Source    the binary heap: Williams, 1964
template <class T>
class heap {
 public:
  constexpr bool empty() const { return list_.empty(); }
  constexpr const T& least() const { return list_[0]; }
  constexpr void push(const T& v) {
    list_.push_back(v);
    for (std::size_t i = list_.size() - 1; i > 0 && list_[i] < list_[(i - 1) / 2]; i = (i - 1) / 2)
      exchange(i, (i - 1) / 2);
  }
  constexpr T pop() {
    const T first = list_[0];
    list_[0] = list_.back();
    list_.pop_back();
    for (std::size_t i = 0, next = smaller_child(0); next < list_.size() && list_[next] < list_[i];
         next = smaller_child(i)) {
      exchange(i, next);
      i = next;
    }
    return first;
  }

 private:
  vec<T> list_;

  constexpr std::size_t smaller_child(std::size_t i) const {
    const std::size_t left = 2 * i + 1, right = left + 1;
    return right < list_.size() && list_[right] < list_[left] ? right : left;
  }
  constexpr void exchange(std::size_t i, std::size_t j) {
    const T other = list_[i];
    list_[i] = list_[j];
    list_[j] = other;
  }
};

}  // namespace partita
