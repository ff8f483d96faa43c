/// A set of numbers that keeps insertion order.
#pragma once

#include <cstdint>

#include <partita/support/vec.hpp>

namespace partita::core_detail {

/// A set of non-negative numbers, indexed by insertion order. Cost: constant per operation,
/// independent of the maximum number.
class number_set {
 public:
  constexpr const vec<int>& numbers() const { return numbers_; }
  /// The index of a number, or -1.
  constexpr int find(int number) const { return slots_.empty() ? -1 : slots_[slot_of(number)]; }
  /// Inserts a number if it is new, and returns its index.
  constexpr int insert(int number) {
    if (2 * (numbers_.size() + 1) > slots_.size()) grow();
    int& slot = slots_[slot_of(number)];
    if (slot < 0) {
      slot = static_cast<int>(numbers_.size());
      numbers_.push_back(number);
    }
    return slot;
  }

 private:
  vec<int> numbers_;
  vec<int> slots_;  ///< indices by hash; the size is a power of two, at most half in use

  constexpr std::size_t slot_of(int number) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = (static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (slots_[i] >= 0 && numbers_[slots_[i]] != number) i = (i + 1) & mask;
    return i;
  }
  constexpr void grow() {
    slots_.assign(slots_.empty() ? 16 : 2 * slots_.size(), -1);
    for (int i = 0; i < static_cast<int>(numbers_.size()); ++i) slots_[slot_of(numbers_[i])] = i;
  }
};

}  // namespace partita::core_detail
