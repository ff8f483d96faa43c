/// Factors: the multiple of a term that a value is. Factors are real numbers, stored as doubles.
/// Products may be rounded but not underflow or overflow; a number that is not a factor stays an
/// operand.
#pragma once

#include <bit>
#include <cstdint>

namespace partita::prove_detail {

/// (For an infinity, `v - v == 0` is not a constant expression.)
constexpr bool is_finite(double v) {
  return (std::bit_cast<std::uint64_t>(v) >> 52 & 0x7ff) != 0x7ff;
}

/// True for a normal number.
constexpr bool is_factor(double v) {
  const double magnitude = v < 0 ? -v : v;
  return magnitude >= 0x1p-1022 && magnitude <= 0x1.fffffffffffffp1023;
}
/// Multiplies by a factor if the product is a factor; otherwise changes nothing.
constexpr bool take_factor(double& scale, double by) {
  if (!is_factor(scale * by)) return false;
  scale *= by;
  return true;
}
/// The same for any number; zeros and infinities stay unchanged.
constexpr bool take_number(double& n, double by) {
  if (n != 0 && is_finite(n)) return take_factor(n, by);
  n *= by;
  return true;
}
/// True if s is exactly x + y. (True for infinities and NaN.)
constexpr bool exact_sum(double x, double y, double s) {
  if (!is_finite(s)) return !is_finite(x) || !is_finite(y);
  const double other = s - x;
  return (x - (s - other)) + (y - other) == 0;
}

}  // namespace partita::prove_detail
