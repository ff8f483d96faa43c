/// Element types.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace partita {

enum class dtype : std::uint8_t {
  f32,
  f64,
  bf16,
  f16,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  boolean
};

inline constexpr int dtype_count = 13;

constexpr std::string_view name_of(dtype t) {
  constexpr std::string_view names[] = {"f32", "f64", "bf16", "f16", "i8",  "i16", "i32",
                                        "i64", "u8",  "u16",  "u32", "u64", "i1"};
  return names[static_cast<int>(t)];
}

/// Returns the bytes of one element; a boolean takes one byte.
constexpr std::int64_t size_of(dtype t) {
  constexpr std::int64_t sizes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1};
  return sizes[static_cast<int>(t)];
}

constexpr bool is_floating(dtype t) { return t <= dtype::f16; }
constexpr bool is_integer(dtype t) { return t >= dtype::i8 && t <= dtype::u64; }
constexpr bool is_unsigned(dtype t) { return t >= dtype::u8 && t <= dtype::u64; }

/// Brain floating point: the upper 16 bits of a binary32, rounded to nearest, ties to even.
struct bf16 {
  std::uint16_t bits = 0;
  constexpr bf16() = default;
  constexpr explicit bf16(float v) {
    const auto u = std::bit_cast<std::uint32_t>(v);
    bits = (u & 0x7fffffffu) > 0x7f800000u
               ? static_cast<std::uint16_t>((u >> 16) | 0x40u)
               : static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  friend constexpr bool operator==(bf16 a, bf16 b) { return float(a) == float(b); }
};

/// IEEE 754 binary16, converted through binary32, rounded to nearest, ties to even.
struct f16 {
  std::uint16_t bits = 0;
  constexpr f16() = default;
  constexpr explicit f16(float v) {
    const auto u = std::bit_cast<std::uint32_t>(v);
    const std::uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
    std::uint32_t out = 0;
    if (magnitude > 0x7f800000u) {
      out = 0x7e00u;  // NaN
    } else if (magnitude >= 0x477ff000u) {
      out = 0x7c00u;  // overflows to infinity
    } else if (magnitude >= 0x38800000u) {
      out = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    } else if (magnitude >= 0x33000000u) {  // subnormal result
      const std::uint32_t shift = 126u - (magnitude >> 23);
      const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
      const std::uint32_t half = 1u << (shift - 1), rest = mantissa & ((1u << shift) - 1u);
      out = mantissa >> shift;
      if (rest > half || (rest == half && (out & 1u))) ++out;
    }
    bits = static_cast<std::uint16_t>(sign | out);
  }
  constexpr explicit operator float() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1fu;
    std::uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent == 0) {
      const float scaled = static_cast<float>(mantissa) * 0x1p-24f;
      return sign ? -scaled : scaled;
    }
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  }
  friend constexpr bool operator==(f16 a, f16 b) { return float(a) == float(b); }
};

/// The dtype of a C++ element type. Any other type is a compile error.
template <class T>
struct dtype_of_type;
template <>
struct dtype_of_type<float> {
  static constexpr dtype value = dtype::f32;
};
template <>
struct dtype_of_type<double> {
  static constexpr dtype value = dtype::f64;
};
template <>
struct dtype_of_type<bf16> {
  static constexpr dtype value = dtype::bf16;
};
template <>
struct dtype_of_type<f16> {
  static constexpr dtype value = dtype::f16;
};
template <>
struct dtype_of_type<std::int32_t> {
  static constexpr dtype value = dtype::i32;
};
template <>
struct dtype_of_type<std::int64_t> {
  static constexpr dtype value = dtype::i64;
};
template <>
struct dtype_of_type<std::int8_t> {
  static constexpr dtype value = dtype::i8;
};
template <>
struct dtype_of_type<std::int16_t> {
  static constexpr dtype value = dtype::i16;
};
template <>
struct dtype_of_type<std::uint8_t> {
  static constexpr dtype value = dtype::u8;
};
template <>
struct dtype_of_type<std::uint16_t> {
  static constexpr dtype value = dtype::u16;
};
template <>
struct dtype_of_type<std::uint32_t> {
  static constexpr dtype value = dtype::u32;
};
template <>
struct dtype_of_type<std::uint64_t> {
  static constexpr dtype value = dtype::u64;
};
template <>
struct dtype_of_type<bool> {
  static constexpr dtype value = dtype::boolean;
};

template <class T>
inline constexpr dtype dtype_of = dtype_of_type<T>::value;

}  // namespace partita
