/// Conversions between element types, one block of elements at a time.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <partita/run/array.hpp>

namespace partita::run_detail {

/// Computes `n` elements from one to three operands; n is a multiple of `lanes`.
using block_function = void (*)(std::int64_t n, const void* const* in, void* out);

/// Returns the type in which elements are computed: binary32 for the 16-bit floats, bytes for i1.
constexpr dtype computed(dtype t) {
  if (t == dtype::bf16 || t == dtype::f16) return dtype::f32;
  return t == dtype::boolean ? dtype::u8 : t;
}
template <class T>
using computed_type =
    std::conditional_t<std::is_same_v<T, bf16> || std::is_same_v<T, f16>, float,
                       std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>;
constexpr bool is_half(dtype t) { return t == dtype::bf16 || t == dtype::f16; }

/// Converts binary64 to a 16-bit float with a single rounding: the intermediate binary32 is rounded
/// to odd.
template <class Half>
Half to_half(double v) {
  const auto f = static_cast<float>(v);
  if (static_cast<double>(f) == v || v != v || std::isinf(f)) return Half(f);
  auto bits = std::bit_cast<std::uint32_t>(f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(v)) --bits;
  return Half(std::bit_cast<float>(bits | 1u));
}

/// Truncates integers from 2^53 on to a multiple of 2^11, made odd if bits were lost: a binary64
/// that rounds to fewer bits as the integer itself does.
template <std::integral Int>
constexpr Int cut_to_odd(Int v) {
  constexpr Int exact = Int{1} << 53, low = (1 << 11) - 1;
  const bool small = v < exact && (std::is_unsigned_v<Int> || v > static_cast<Int>(0 - exact));
  if (small || (v & low) == 0) return v;
  return (v & ~low) | (low + 1);
}

/// Converts one element; see `op::convert` for the rules.
template <class To, class From>
To convert_element(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (std::is_same_v<From, bf16> || std::is_same_v<From, f16>) {
    return convert_element<To>(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_same_v<To, bf16> || std::is_same_v<To, f16>) {
    if constexpr (std::is_same_v<From, float>)
      return To(v);
    else if constexpr (std::is_integral_v<From> && sizeof(From) == 8)
      return to_half<To>(static_cast<double>(cut_to_odd(v)));
    else
      return to_half<To>(static_cast<double>(v));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The bounds are powers of two, so exact; the upper one is the first value that is too large.
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From high = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From(2);
    if (v != v) return To(0);
    if (v < low) return std::numeric_limits<To>::min();
    if (v >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

/// Calls `f(i)` for i in [0, n), n a multiple of `lanes`; the inner loop is short enough for
/// compilers that vectorise with care.
template <class F>
void for_lanes(std::int64_t n, F f) {
  for (std::int64_t i = 0; i < n; i += lanes)
    for (std::int64_t j = i; j < i + lanes; ++j) f(j);
}

/// Converts elements of a computed type to a stored type.
template <class To, class From>
void convert_block(std::int64_t n, const void* const* in, void* out) {
  const auto* __restrict x = static_cast<const From*>(in[0]);
  auto* __restrict y = static_cast<To*>(out);
  for_lanes(n, [=](std::int64_t i) { y[i] = convert_element<To>(x[i]); });
}
/// Rounds to a 16-bit float that stays in binary32, in which it is computed.
template <class Half, class From>
void round_block(std::int64_t n, const void* const* in, void* out) {
  const auto* x = static_cast<const From*>(in[0]);
  auto* y = static_cast<float*>(out);
  for_lanes(n, [=](std::int64_t i) { y[i] = static_cast<float>(convert_element<Half>(x[i])); });
}

/// Returns the conversion from a computed type to any type; a 16-bit result stays in binary32.
constexpr block_function convert_function(dtype from, dtype to) {
  return with_type(computed(from), [to]<class From>(std::type_identity<From>) -> block_function {
    return with_type(to, []<class To>(std::type_identity<To>) -> block_function {
      if constexpr (std::is_same_v<From, bf16> || std::is_same_v<From, f16> ||
                    std::is_same_v<From, bool>)
        return nullptr;  // not a computed type
      else if constexpr (std::is_same_v<To, bf16> || std::is_same_v<To, f16>)
        return &round_block<To, From>;
      else
        return &convert_block<To, From>;
    });
  });
}
/// Return the conversions between a stored 16-bit float and binary32.
inline block_function widen_function(dtype half) {
  return half == dtype::bf16 ? &convert_block<float, bf16> : &convert_block<float, f16>;
}
inline block_function narrow_function(dtype half) {
  return half == dtype::bf16 ? &convert_block<bf16, float> : &convert_block<f16, float>;
}
/// Returns the rounding of binary32 to the values of a 16-bit float; works in place.
inline block_function round_function(dtype half) { return convert_function(dtype::f32, half); }

/// Returns the element that `op::constant` encodes in these bits.
template <class T>
T element_of_bits(std::int64_t bits) {
  if constexpr (std::is_same_v<T, bool>)
    return bits != 0;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(bits);
  else
    return convert_element<T>(std::bit_cast<double>(bits));
}
/// Fills `n` stored elements with one value.
inline void fill(dtype t, std::int64_t bits, std::int64_t n, void* out) {
  with_type(t, [&]<class T>(std::type_identity<T>) {
    const T v = element_of_bits<T>(bits);
    for (std::int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = v;
  });
}

}  // namespace partita::run_detail
