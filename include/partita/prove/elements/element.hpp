/// Elements of tensors as formulas, and numbers among them.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/op/combine.hpp>
#include <partita/op/registry.hpp>
#include <partita/prove/elements/field.hpp>

namespace partita::prove_detail {

/// One element of a tensor: a formula, and if it is a number, its value (as `constant` stores it).
///
/// Formulas of all floating types are over the real numbers, with type f64. Formulas of integers
/// are over integers, and represent the wrapped value in the element's type: knowledge about a
/// formula in one type need not hold in another.
struct element {
  fingerprint of;
  std::int64_t number = 0;
  dtype type = dtype::f64;
  bool known = false;
  std::int16_t terms = 0;  ///< number of exponentials in a short sum; see exponentials.hpp

  friend constexpr bool operator==(const element& x, const element& y) { return x.of == y.of; }
};

/// An integer, wrapped to its type.
constexpr std::int64_t wrapped(dtype t, std::int64_t n) {
  if (t == dtype::boolean) return n != 0 ? 1 : 0;
  const int unused = 64 - 8 * static_cast<int>(size_of(t));
  const auto bits = static_cast<std::uint64_t>(n) << unused;
  return is_unsigned(t) ? static_cast<std::int64_t>(bits >> unused)
                        : static_cast<std::int64_t>(bits) >> unused;
}
constexpr element real(double v) {
  return {field::real(v), std::bit_cast<std::int64_t>(v), dtype::f64, true};
}
constexpr element integer(dtype t, std::int64_t n) {
  const std::int64_t w = wrapped(t, n);
  return {t == dtype::u64 ? field::natural(static_cast<std::uint64_t>(w)) : field::integer(w), w, t,
          true};
}
/// The number in the attribute of a constant.
constexpr element number_of_bits(dtype t, std::int64_t bits) {
  return is_floating(t) ? real(std::bit_cast<double>(bits)) : integer(t, bits);
}
constexpr element small_number(dtype t, int n) { return is_floating(t) ? real(n) : integer(t, n); }
constexpr element identity_of(combiner c, dtype t) {
  return number_of_bits(t, identity_bits(c, t));
}
constexpr double real_of(const element& x) { return std::bit_cast<double>(x.number); }
constexpr element formula(dtype t, const fingerprint& f) {
  return {f, 0, is_floating(t) ? dtype::f64 : t, false};
}

/// The number v if it has the value of a formula, otherwise the formula.
constexpr element real_or(double v, const fingerprint& f) {
  const element x = real(v);
  return x.of == f ? x : formula(dtype::f64, f);
}

/// (For an infinity, `v - v == 0` is not a constant expression.)
constexpr bool is_finite(double v) {
  return (std::bit_cast<std::uint64_t>(v) >> 52 & 0x7ff) != 0x7ff;
}
/// True if a floating type contains a real number.
constexpr bool is_of_type(dtype t, double v) {
  if (!is_finite(v) || t == dtype::f64) return true;
  const auto single = static_cast<float>(v);
  if (t == dtype::bf16) return static_cast<double>(static_cast<float>(bf16(single))) == v;
  if (t == dtype::f16) return static_cast<double>(static_cast<float>(f16(single))) == v;
  return t == dtype::f32 && static_cast<double>(single) == v;
}
/// True if a floating type contains all numbers of another one.
constexpr bool has_all_of(dtype wide, dtype narrow) {
  return wide == narrow || wide == dtype::f64 ||
         (wide == dtype::f32 && (narrow == dtype::bf16 || narrow == dtype::f16));
}

}  // namespace partita::prove_detail
