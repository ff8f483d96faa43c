/// Factors: how often a value is a term. Real numbers as doubles, of which products may be rounded,
/// but neither vanish nor become infinite: what is no factor stays an operand.
#pragma once

#include <bit>
#include <cstdint>

namespace partita::prove_detail {

/// (Of an infinity, `v - v == 0` is no constant expression.)
constexpr bool is_finite(double v) {
  return (std::bit_cast<std::uint64_t>(v) >> 52 & 0x7ff) != 0x7ff;
}

/// A normal number.
constexpr bool is_factor(double v) {
  const double magnitude = v < 0 ? -v : v;
  return magnitude >= 0x1p-1022 && magnitude <= 0x1.fffffffffffffp1023;
}
/// Multiplies by a factor, if the product is one; else nothing changes.
constexpr bool take_factor(double& scale, double by) {
  if (!is_factor(scale * by)) return false;
  scale *= by;
  return true;
}
/// The same of any number; zeros and infinities stay what they are.
constexpr bool take_number(double& n, double by) {
  if (n != 0 && is_finite(n)) return take_factor(n, by);
  n *= by;
  return true;
}
/// Is x + y the double s that came out? (Of infinities and NaN, it is.)
constexpr bool exact_sum(double x, double y, double s) {
  if (!is_finite(s)) return !is_finite(x) || !is_finite(y);
  const double other = s - x;
  return (x - (s - other)) + (y - other) == 0;
}

}  // namespace partita::prove_detail
