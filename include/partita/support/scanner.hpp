/// A reader that consumes a text from its beginning to its end.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/support/vec.hpp>

namespace partita {

/// The unread rest of a text. A function that does not find what it looks for consumes nothing.
class scanner {
 public:
  constexpr explicit scanner(std::string_view in) : in_(in) {}

  constexpr bool done() const { return at_ == in_.size(); }
  constexpr std::size_t position() const { return at_; }
  constexpr std::string_view all() const { return in_; }
  constexpr std::string_view rest() const { return in_.substr(at_); }
  constexpr bool starts(std::string_view piece) const {
    return rest().substr(0, piece.size()) == piece;
  }
  /// True if there is a next character and it satisfies `wanted`.
  template <class Wanted>
  constexpr bool starts_with(const Wanted& wanted) const {
    return at_ < in_.size() && wanted(in_[at_]);
  }
  /// Consumes `piece` if the text continues with it.
  constexpr bool accept(std::string_view piece) {
    if (!starts(piece)) return false;
    at_ += piece.size();
    return true;
  }
  /// Consumes the longest prefix whose characters all satisfy `wanted`, and returns it.
  template <class Wanted>
  constexpr std::string_view take_while(const Wanted& wanted) {
    const std::size_t begin = at_;
    while (at_ < in_.size() && wanted(in_[at_])) ++at_;
    return in_.substr(begin, at_ - begin);
  }
  /// Consumes like take_while, but also accepts every character between quotes.
  template <class Wanted>
  constexpr std::string_view take_with_quotes(const Wanted& wanted) {
    bool inside = false;
    return take_while([&](char c) {
      if (c == '"') inside = !inside;
      return inside || c == '"' || wanted(c);
    });
  }
  /// Moves back by `n` characters.
  constexpr void give_back(std::size_t n) { at_ -= n; }

  /// Reads an integer such as `-12` that fits into 64 bits.
  constexpr bool integer(std::int64_t& out) {
    const std::size_t begin = at_;
    const bool negative = accept("-");
    std::uint64_t v = 0;
    const bool good = natural(v, (std::uint64_t{1} << 63) - (negative ? 0 : 1));
    if (good) out = static_cast<std::int64_t>(negative ? 0 - v : v);
    if (!good) at_ = begin;
    return good;
  }
  /// Reads a number without a sign, at most `limit`.
  constexpr bool natural(std::uint64_t& out, std::uint64_t limit = UINT64_MAX) {
    const std::size_t begin = at_;
    const auto digits = take_while(is_digit);
    bool good = !digits.empty();
    std::uint64_t v = 0;
    for (char c : digits) {
      const auto digit = static_cast<std::uint64_t>(c - '0');
      good = good && v <= (limit - digit) / 10;
      if (good) v = 10 * v + digit;
    }
    if (good) out = v;
    if (!good) at_ = begin;
    return good;
  }
  /// Reads a list such as `[0, 2]`.
  constexpr bool integers(vec<std::int64_t>& out) {
    if (!accept("[")) return false;
    while (!accept("]")) {
      std::int64_t v = 0;
      if ((!out.empty() && !accept(", ")) || !integer(v)) return false;
      out.push_back(v);
    }
    return true;
  }

  static constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

 private:
  std::string_view in_;
  std::size_t at_ = 0;
};

}  // namespace partita
