/// Integer arithmetic without wrap-around: overflow detection for sizes, saturation for costs.
#pragma once

#include <cstdint>

#include <partita/support/text.hpp>

namespace partita {

/// The limit at which costs saturate: a figure with this value means "this much or more". Texts
/// show it as `>= 2^63 - 1` (print_figure).
inline constexpr std::int64_t saturated = INT64_MAX;

/// Returns a + b, clamped to the range of 64 bits.
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? INT64_MIN : INT64_MAX;
}
/// Returns a * b, clamped to the range of 64 bits.
constexpr std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

/// Appends a cost figure to a text.
constexpr void print_figure(text& out, std::int64_t figure) {
  if (figure == saturated)
    out << ">= 2^63 - 1";
  else
    out << figure;
}

/// An integer that records whether any step of its computation overflowed 64 bits. A formula can
/// then be written in its usual form and checked once, at its end.
class checked {
 public:
  constexpr checked(std::int64_t v) : value_(v) {}

  constexpr bool overflowed() const { return overflowed_; }
  /// Returns the value, or `other` if it overflowed.
  constexpr std::int64_t value_or(std::int64_t other) const { return overflowed_ ? other : value_; }

  friend constexpr checked operator+(checked a, checked b) {
    checked r = both(a, b);
    if (__builtin_add_overflow(a.value_, b.value_, &r.value_)) r.overflowed_ = true;
    return r;
  }
  friend constexpr checked operator-(checked a, checked b) {
    checked r = both(a, b);
    if (__builtin_sub_overflow(a.value_, b.value_, &r.value_)) r.overflowed_ = true;
    return r;
  }
  friend constexpr checked operator*(checked a, checked b) {
    checked r = both(a, b);
    if (__builtin_mul_overflow(a.value_, b.value_, &r.value_)) r.overflowed_ = true;
    return r;
  }

 private:
  std::int64_t value_ = 0;
  bool overflowed_ = false;

  static constexpr checked both(checked a, checked b) {
    checked r = 0;
    r.overflowed_ = a.overflowed_ || b.overflowed_;
    return r;
  }
};

/// A running sum of non-negative numbers that are added and later removed. It is exact even while
/// it exceeds 64 bits.
class level {
 public:
  constexpr void add(std::int64_t n) {
    low_ += static_cast<std::uint64_t>(n);
    if (low_ < static_cast<std::uint64_t>(n)) ++high_;
  }
  /// Subtracts a number that was added before.
  constexpr void remove(std::int64_t n) {
    if (low_ < static_cast<std::uint64_t>(n)) --high_;
    low_ -= static_cast<std::uint64_t>(n);
  }
  /// Returns the sum, at most `saturated`.
  constexpr std::int64_t value() const {
    return high_ > 0 || low_ >> 63 != 0 ? saturated : static_cast<std::int64_t>(low_);
  }

 private:
  std::uint64_t low_ = 0;
  int high_ = 0;
};

}  // namespace partita
