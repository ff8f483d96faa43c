/// A small hash table from names to numbers, usable in constant evaluation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <partita/support/vec.hpp>

namespace partita {

/// Returns a hash of the name.
///
/// Source    the hash function FNV-1a
constexpr std::size_t hash_of(std::string_view name) {
  std::uint64_t h = 14695981039346656037u;
  const char* const chars = name.data();
  for (std::size_t i = 0, size = name.size(); i < size; ++i)
    h = (h ^ static_cast<unsigned char>(chars[i])) * 1099511628211u;
  return static_cast<std::size_t>(h);
}

/// Returns a == b. In constant evaluation std::string_view would call two functions per character.
constexpr bool same_chars(std::string_view a, std::string_view b) {
  const std::size_t size = a.size();
  if (size != b.size()) return false;
  const char *x = a.data(), *y = b.data();
  for (std::size_t i = 0; i < size; ++i)
    if (x[i] != y[i]) return false;
  return true;
}

/// A hash table with open addressing. The names must outlive the table.
class name_table {
 public:
  constexpr explicit name_table(std::size_t expected) { rehash(2 * expected + 8); }

  /// Adds a name unless it is present, and returns the number stored for it.
  constexpr int insert(std::string_view name, int number) {
    if (2 * (count_ + 1) > slots_.size()) rehash(2 * slots_.size());
    slot& s = slots_[locate(name)];
    if (!s.used) {
      s = {name, number, true};
      ++count_;
    }
    return s.number;
  }
  /// Returns the number of a name, or `missing`.
  constexpr int find(std::string_view name, int missing = -1) const {
    const slot& s = slots_[locate(name)];
    return s.used ? s.number : missing;
  }

 private:
  struct slot {
    std::string_view name;
    int number = 0;
    bool used = false;
  };
  vec<slot> slots_;
  std::size_t count_ = 0;

  constexpr std::size_t locate(std::string_view name) const {
    std::size_t i = hash_of(name) & (slots_.size() - 1);
    while (slots_[i].used && !same_chars(slots_[i].name, name)) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  constexpr void rehash(std::size_t wanted) {
    std::size_t size = 8;
    while (size < wanted) size *= 2;
    vec<slot> old = slots_;
    slots_.assign(size, slot{});
    count_ = 0;
    for (const auto& s : old)
      if (s.used) insert(s.name, s.number);
  }
};

}  // namespace partita
