/// A text buffer that also works inside constant evaluation.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include <partita/support/vec.hpp>

namespace partita {

/// A text under construction; `operator<<` appends.
///
/// `std::string` is not used because its small-buffer union is not a constant expression on every
/// supported compiler.
class text {
 public:
  constexpr text() = default;
  constexpr text(std::string_view s) { *this << s; }
  constexpr text(const char* s) { *this << std::string_view(s); }

  constexpr text& operator<<(std::string_view s) {
    chars_.insert_back(s.begin(), s.end());
    return *this;
  }
  constexpr text& operator<<(const char* s) { return *this << std::string_view(s); }
  constexpr text& operator<<(const text& s) { return *this << s.view(); }
  constexpr text& operator<<(char c) {
    chars_.push_back(c);
    return *this;
  }
  template <std::integral Int>
  requires(!std::same_as<Int, char> && !std::same_as<Int, bool>) constexpr text& operator<<(
      Int number) {
    char digits[24] = {};
    int count = 0;
    const bool negative = number < 0;
    auto rest = static_cast<std::uint64_t>(number);
    if (negative) rest = std::uint64_t{0} - rest;
    do {
      digits[count++] = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    if (negative) digits[count++] = '-';
    while (count > 0) chars_.push_back(digits[--count]);
    return *this;
  }

  /// Keeps only the first `size` characters.
  constexpr void truncate(std::size_t size) { chars_.resize(size, '\0'); }
  constexpr bool empty() const { return chars_.empty(); }
  constexpr std::size_t size() const { return chars_.size(); }
  constexpr std::string_view view() const { return {chars_.data(), chars_.size()}; }
  constexpr operator std::string_view() const { return view(); }
  friend constexpr bool operator==(const text& a, const text& b) { return a.view() == b.view(); }
  friend constexpr bool operator==(const text& a, std::string_view b) { return a.view() == b; }
  friend constexpr bool operator==(const text& a, const char* b) { return a.view() == b; }
  /// Writes the text to a stream; the caller includes `<ostream>`.
  template <class Traits>
  friend std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                                      const text& t) {
    return out << t.view();
  }

 private:
  vec<char> chars_;
};

/// Returns a text with all arguments appended.
template <class... Parts>
constexpr text concat(const Parts&... parts) {
  text result;
  (result << ... << parts);
  return result;
}

/// Appends `item(i)` for i in [0, count), separated by ", ".
template <class Item>
constexpr void append_list(text& out, int count, Item item) {
  for (int i = 0; i < count; ++i) {
    if (i > 0) out << ", ";
    item(i);
  }
}

}  // namespace partita
