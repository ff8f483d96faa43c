/// Natural numbers of any size.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/support/vec.hpp>

namespace partita::support_detail {

/// A natural number of any size.
class natural {
 public:
  constexpr explicit natural(std::uint64_t v = 0) {
    for (; v != 0; v >>= 32) limbs_.push_back(static_cast<std::uint32_t>(v));
  }
  constexpr int bits() const {
    if (limbs_.empty()) return 0;
    return static_cast<int>(32 * limbs_.size()) - std::countl_zero(limbs_.back());
  }
  /// *this = *this * factor + more
  constexpr void multiply(std::uint32_t factor, std::uint32_t more = 0) {
    std::uint64_t carry = more;
    for (auto& limb : limbs_) {
      carry += std::uint64_t{limb} * factor;
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) limbs_.push_back(static_cast<std::uint32_t>(carry));
  }
  constexpr void multiply_by_power_of_ten(int n) {
    for (; n >= 9; n -= 9) multiply(1000000000);
    for (; n > 0; --n) multiply(10);
  }
  constexpr void shift_left(int n) {
    if (limbs_.empty()) return;
    multiply(std::uint32_t{1} << n % 32);
    const auto whole = static_cast<std::size_t>(n / 32), size = limbs_.size();
    if (whole == 0) return;
    limbs_.resize(size + whole, 0);
    for (std::size_t i = size; i-- > 0;) limbs_[i + whole] = limbs_[i];
    for (std::size_t i = 0; i < whole; ++i) limbs_[i] = 0;
  }
  /// Subtracts `other`, which must not be greater than this number.
  constexpr void subtract(const natural& other) {
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
      const std::uint64_t taken = borrow + (i < other.limbs_.size() ? other.limbs_[i] : 0);
      borrow = limbs_[i] < taken ? 1 : 0;
      limbs_[i] -= static_cast<std::uint32_t>(taken);
    }
    while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  }
  friend constexpr bool operator<(const natural& a, const natural& b) {
    if (a.limbs_.size() != b.limbs_.size()) return a.limbs_.size() < b.limbs_.size();
    for (std::size_t i = a.limbs_.size(); i-- > 0;)
      if (a.limbs_[i] != b.limbs_[i]) return a.limbs_[i] < b.limbs_[i];
    return false;
  }

 private:
  vec<std::uint32_t> limbs_;  // least significant first; the last one is not 0
};

/// Returns a / b rounded to nearest, ties to even; requires b > 0 and a / b < 2^63.
constexpr std::uint64_t rounded_quotient(natural a, natural b) {
  int steps = a.bits() - b.bits();
  if (steps < 0) steps = 0;
  b.shift_left(steps);
  std::uint64_t q = 0;
  for (; steps >= 0; --steps) {  // a < 2 b
    q *= 2;
    if (!(a < b)) {
      a.subtract(b);
      ++q;
    }
    a.shift_left(1);
  }
  // Now `a` is twice the remainder.
  if (b < a || (!(a < b) && q % 2 == 1)) ++q;
  return q;
}

}  // namespace partita::support_detail
