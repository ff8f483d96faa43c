/// Exact conversion between numbers and text: what is printed reads back as the same bits.
///
/// (std::to_chars and std::from_chars for floating-point numbers are not constant expressions.)
#pragma once

#include <bit>
#include <cstdint>

#include <partita/support/scanner.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace support_detail {

// Bits of binary64.
inline constexpr std::uint64_t infinity = 0x7ff0000000000000u, usual_nan = 0x7ff8000000000000u;

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

/// Returns n * 10^exponent as the nearest binary64, ties to even.
constexpr double nearest_double(natural n, int exponent);
/// Overload with a fast path: for common numbers, one operation on exact values rounds correctly.
constexpr double nearest_double(std::uint64_t n, int exponent) {
  if (n >= std::uint64_t{1} << 53 || exponent < -22 || exponent > 22)
    return nearest_double(natural(n), exponent);
  double ten = 1;
  for (int i = exponent < 0 ? -exponent : exponent; i > 0; --i) ten *= 10;
  const auto whole = static_cast<double>(n);
  return exponent < 0 ? whole / ten : whole * ten;
}
constexpr double nearest_double(natural n, int exponent) {
  if (n.bits() == 0) return 0;
  natural d(1);
  if (exponent < 0)
    d.multiply_by_power_of_ten(-exponent);
  else
    n.multiply_by_power_of_ten(exponent);
  // The quotient is in [2^e, 2^(e + 1)).
  int e = n.bits() - d.bits();
  natural low = e < 0 ? n : d;
  low.shift_left(e < 0 ? -e : e);
  if (e < 0 ? low < d : n < low) --e;
  const int unit = e - 52 < -1074 ? -1074 : e - 52;  // exponent of the last bit
  if (unit + 52 > 1023) return std::bit_cast<double>(infinity);
  (unit < 0 ? n : d).shift_left(unit < 0 ? -unit : unit);
  // The leading bit of a normal number, and a carry, count up the exponent.
  const auto biased = static_cast<std::uint64_t>(unit + 1074) << 52;
  return std::bit_cast<double>(biased + rounded_quotient(n, d));
}

/// Reads the digits of a decimal number of any length. A binary64, and the midpoint of two
/// neighbours, has at most 767 significant digits. Of the digits after that, it only matters
/// whether they are all 0, so one digit represents them.
class digit_reader {
 public:
  constexpr void take(std::string_view digits) {
    for (char c : digits) {
      if (kept_ == most) {
        ++left_out_;
        rest_ = rest_ || c != '0';
      } else if (kept_ > 0 || c != '0') {
        ++kept_;
        n_.multiply(10, static_cast<std::uint32_t>(c - '0'));
      }
    }
  }
  /// Returns the digits as a number, without the last `left_out()` digits.
  constexpr natural number() const {
    natural n = n_;
    if (left_out_ > 0) n.multiply(10, rest_ ? 1 : 0);
    return n;
  }
  constexpr std::int64_t left_out() const { return left_out_ > 0 ? left_out_ - 1 : 0; }

 private:
  static constexpr int most = 800;
  natural n_;
  int kept_ = 0;
  std::int64_t left_out_ = 0;
  bool rest_ = false;
};

/// A decimal number d.ddd * 10^exponent.
struct decimal {
  std::uint64_t digits = 0;
  int exponent = 0;  ///< of the first digit
};

/// Returns m * 10^power / 2^shift rounded to nearest, ties to even, using 128-bit arithmetic.
///
/// Requires m < 2^53, 0 <= power < 20, 0 < shift < 120 and a quotient below 2^64.
constexpr std::uint64_t rounded_product(std::uint64_t m, int power, int shift) {
  __extension__ using wide = unsigned __int128;
  std::uint64_t ten = 1;
  for (; power > 0; --power) ten *= 10;
  const wide product = wide{m} * ten, half = wide{1} << (shift - 1);
  const wide rest = product & (2 * half - 1);
  const auto q = static_cast<std::uint64_t>(product >> shift);
  return q + (rest > half || (rest == half && q % 2 == 1) ? 1 : 0);
}

/// Returns `v`, finite and above 0, rounded to nearest with `count` significant digits.
constexpr decimal round_to_digits(double v, int count) {
  const auto bits = std::bit_cast<std::uint64_t>(v);
  const int field = static_cast<int>(bits >> 52);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const std::uint64_t mantissa = field == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
  const int unit = (field == 0 ? 1 : field) - 1075;
  std::uint64_t limit = 1;
  for (int i = 0; i < count; ++i) limit *= 10;
  // A lower bound of log10(v), from 1233 / 4096 < log10(2). Each step is at most one too low.
  const int log2 = unit + static_cast<int>(std::bit_width(mantissa)) - 1;
  for (decimal r{0, (log2 * 1233 >> 12) - 1};; ++r.exponent) {
    const int power = count - 1 - r.exponent;
    if (unit < 0 && unit > -120 && power >= 0 && power <= 19) {
      r.digits = rounded_product(mantissa, power, -unit);
      if (r.digits < limit) return r;
      continue;
    }
    natural n(mantissa), d(1);
    (unit < 0 ? d : n).shift_left(unit < 0 ? -unit : unit);
    (power < 0 ? d : n).multiply_by_power_of_ten(power < 0 ? -power : power);
    r.digits = rounded_quotient(n, d);
    if (r.digits < limit) return r;
  }
}

/// True if `v` is the binary64 nearest to the decimal number of `count` digits.
constexpr bool identifies(const decimal& d, int count, double v) {
  return nearest_double(d.digits, d.exponent + 1 - count) == v;
}

}  // namespace support_detail

/// Prints a binary64 in the notation of `%g`, with six significant digits if they identify the
/// number, else with as many as needed, up to 17. Also prints `inf` and `nan`; any other NaN is
/// printed with its bits: `nan(0x7ff8000000000001)`.
constexpr void print_number(text& out, double v) {
  const auto bits = std::bit_cast<std::uint64_t>(v);
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  if (v != v && magnitude != support_detail::usual_nan) {
    out << "nan(0x";
    for (int shift = 60; shift >= 0; shift -= 4) out << "0123456789abcdef"[bits >> shift & 15];
    out << ')';
    return;
  }
  if (magnitude != bits) out << '-';
  if (v != v) {
    out << "nan";
    return;
  }
  const double positive = std::bit_cast<double>(magnitude);
  if (positive == 0) {
    out << '0';
    return;
  }
  if (magnitude == support_detail::infinity) {
    out << "inf";
    return;
  }
  // If some number of digits suffices, every larger one does too.
  int too_few = 5, count = 17;
  for (int tried = 6; count - too_few > 1; tried = (too_few + count) / 2)
    (support_detail::identifies(support_detail::round_to_digits(positive, tried), tried, positive)
         ? count
         : too_few) = tried;
  support_detail::decimal r = support_detail::round_to_digits(positive, count);
  const bool scientific = r.exponent < -4 || r.exponent >= count;
  char d[17] = {};
  for (int i = count - 1; i >= 0; --i, r.digits /= 10)
    d[i] = static_cast<char>('0' + r.digits % 10);
  int last = count - 1;
  while (last > 0 && d[last] == '0') --last;
  // digits up to and including this one are before the point
  const int point = scientific ? 0 : r.exponent;
  if (point < 0) {
    out << "0.";
    for (int i = -1; i > point; --i) out << '0';
    for (int i = 0; i <= last; ++i) out << d[i];
  } else {
    for (int i = 0; i <= (last > point ? last : point); ++i) {
      if (i == point + 1) out << '.';
      out << d[i];
    }
  }
  if (scientific) out << 'e' << r.exponent;
}

/// Reads any decimal number, rounded to nearest, and everything print_number prints. Returns false
/// if the text does not start with a number.
constexpr bool read_number(scanner& in, double& out) {
  const bool negative = in.accept("-");
  if (in.accept("nan(0x")) {
    std::uint64_t bits = 0;
    const auto digits =
        in.take_while([](char c) { return scanner::is_digit(c) || (c >= 'a' && c <= 'f'); });
    for (char c : digits)
      bits = bits << 4 | static_cast<std::uint64_t>(c < 'a' ? c - '0' : c - 'a' + 10);
    out = std::bit_cast<double>(bits);
    return !negative && digits.size() == 16 && in.accept(")") && out != out;
  }
  if (in.accept("nan")) {
    out =
        std::bit_cast<double>(support_detail::usual_nan | (negative ? std::uint64_t{1} << 63 : 0));
    return true;
  }
  double positive = 0;
  if (in.accept("inf")) {
    positive = std::bit_cast<double>(support_detail::infinity);
  } else {
    support_detail::digit_reader digits;
    const auto whole = in.take_while(scanner::is_digit);
    digits.take(whole);
    std::int64_t exponent = 0;
    if (in.accept(".")) {
      const auto fraction = in.take_while(scanner::is_digit);
      digits.take(fraction);
      if (fraction.empty()) return false;
      exponent = -static_cast<std::int64_t>(fraction.size());
    }
    if (whole.empty()) return false;
    const support_detail::natural n = digits.number();
    exponent += digits.left_out();
    if (in.accept("e")) {
      std::int64_t given = 0;
      if (in.accept("+") && !in.starts_with(scanner::is_digit)) return false;
      if (!in.integer(given) || given > 1 << 30 || given < -(1 << 30)) return false;
      exponent += given;
    }
    // The digits do not matter for numbers that are far too large or far too small.
    const std::int64_t log10 = exponent + n.bits() * 1233 / 4096;
    if (n.bits() == 0 || log10 < -400)
      positive = 0;
    else if (log10 > 400)
      positive = std::bit_cast<double>(support_detail::infinity);
    else
      positive = support_detail::nearest_double(n, static_cast<int>(exponent));
  }
  out = negative ? -positive : positive;
  return true;
}

}  // namespace partita
