/// Bits and powers of integers, one element at a time.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <functional>
#include <type_traits>

#include <partita/run/array.hpp>

namespace partita::run_detail {

/// An integer type in which overflow wraps.
template <class T>
using wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// `F`: a function object such as std::bit_and<>.
template <class F>
struct bitwise_lanes {
  template <std::integral T>
  static T one(T x, T y) {
    return static_cast<T>(F()(x, y));
  }
};
using and_lanes = bitwise_lanes<std::bit_and<>>;
using or_lanes = bitwise_lanes<std::bit_or<>>;
using xor_lanes = bitwise_lanes<std::bit_xor<>>;
struct boolean_not_lanes {
  static std::uint8_t one(std::uint8_t x) { return x == 0; }
};
struct not_lanes {
  using on_booleans = boolean_not_lanes;
  template <std::integral T>
  static T one(T x) {
    return static_cast<T>(~x);
  }
};
struct popcnt_lanes {
  template <std::integral T>
  static T one(T x) {
    return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
  }
};
struct count_leading_zeros_lanes {
  template <std::integral T>
  static T one(T x) {
    return static_cast<T>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(x)));
  }
};

/// True if a shift by this number moves every bit out.
template <std::integral T>
bool shifts_out(T by) {
  return static_cast<std::make_unsigned_t<T>>(by) >= 8 * sizeof(T);
}
struct shift_left_lanes {
  template <std::integral T>
  static T one(T x, T by) {
    return shifts_out(by) ? T(0) : static_cast<T>(static_cast<wrapping<T>>(x) << by);
  }
};
struct shift_right_arithmetic_lanes {
  template <std::integral T>
  static T one(T x, T by) {
    const T last = 8 * sizeof(T) - 1;
    return static_cast<T>(static_cast<std::make_signed_t<T>>(x) >> (shifts_out(by) ? last : by));
  }
};
struct shift_right_logical_lanes {
  template <std::integral T>
  static T one(T x, T by) {
    return shifts_out(by) ? T(0) : static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) >> by);
  }
};

/// Computes a power by repeated squaring; see op::power for negative exponents.
template <std::integral T>
T integer_power(T x, T y) {
  if constexpr (std::is_signed_v<T>)
    if (y < 0) {
      if (x == 1) return 1;
      if (x == -1) return y % 2 == 0 ? 1 : -1;
      return 0;
    }
  auto base = static_cast<wrapping<T>>(x);
  wrapping<T> result = 1;
  for (; y > 0; y = static_cast<T>(y / 2), base *= base)
    if (y % 2 != 0) result *= base;
  return static_cast<T>(result);
}

}  // namespace partita::run_detail
