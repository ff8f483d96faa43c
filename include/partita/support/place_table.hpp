/// A hash table of positions in a list, usable in constant evaluation.
#pragma once

#include <cstddef>
#include <cstdint>

#include <partita/support/vec.hpp>

namespace partita {

/// Returns a hash that spreads a number over all bits.
constexpr std::size_t hash_of(std::uint64_t n) {
  n ^= n >> 32;
  n *= 0x9e3779b97f4a7c15u;
  return static_cast<std::size_t>(n ^ n >> 29);
}

/// A hash table with open addressing that stores positions in a list. The caller owns the list and
/// compares its elements: `same(place)` is true if the wanted element is at that position, and
/// `hash(place)` returns the hash of the element there.
class place_table {
 public:
  /// Returns the first position that was added for this element, or -1.
  template <class Same>
  constexpr int find(std::size_t hash, const Same& same) const {
    if (slots_.empty()) return -1;
    const int* const slots = slots_.data();
    const std::size_t last = slots_.size() - 1;
    for (std::size_t i = hash & last;; i = (i + 1) & last) {
      PARTITA_WORK(1);
      if (slots[i] == 0 || same(slots[i] - 1)) return slots[i] - 1;
    }
  }
  /// Adds a position whose element is not in the table yet.
  template <class Hash>
  constexpr void insert(int place, const Hash& hash) {
    if (2 * static_cast<std::size_t>(++count_) > slots_.size()) {
      const vec<int> old = slots_;
      slots_.assign(old.empty() ? 16 : 2 * old.size(), 0);
      for (int s : old)
        if (s > 0) put(s, hash(s - 1));
    }
    put(place + 1, hash(place));
  }

 private:
  vec<int> slots_;  ///< place + 1, or 0
  int count_ = 0;

  constexpr void put(int s, std::size_t hash) {
    int* const slots = slots_.data();
    const std::size_t last = slots_.size() - 1;
    std::size_t i = hash & last;
    while (slots[i] > 0) {
      PARTITA_WORK(1);
      i = (i + 1) & last;
    }
    slots[i] = s;
  }
};

/// A place_table that also stores the hashes, for a list that only grows.
class hash_index {
 public:
  constexpr void reserve(std::size_t n) { hashes_.reserve(n); }
  template <class Same>
  constexpr int find(std::size_t hash, const Same& same) const {
    const std::size_t* const hashes = hashes_.data();
    return table_.find(hash, [&](int i) { return hashes[i] == hash && same(i); });
  }
  /// Adds the next position, whose element has this hash.
  constexpr void add(std::size_t hash) {
    hashes_.push_back(hash);
    const std::size_t* const hashes = hashes_.data();
    table_.insert(static_cast<int>(hashes_.size()) - 1, [&](int i) { return hashes[i]; });
  }

 private:
  vec<std::size_t> hashes_;  ///< by place
  place_table table_;
};

}  // namespace partita
