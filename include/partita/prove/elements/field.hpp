/// Numbers that represent formulas: their values at a random point.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/support/place_table.hpp>

namespace partita::prove_detail {

/// A formula of sums and products, represented by its values in the two fields of integers modulo
/// 2^61 - 1 and 2^62 - 57, where each variable is a random number. Equal formulas have equal
/// values, whatever the order of sums and products, with factors distributed or not. Different
/// formulas have equal values in both fields with probability 10^-30.
///
/// Source    Schwartz, Fast probabilistic algorithms for verification of polynomial identities,
///           1980; Gulwani and Necula, Discovering affine equalities using random interpretation,
///           2003
struct fingerprint {
  std::uint64_t a = 0, b = 0;

  friend constexpr bool operator==(const fingerprint&, const fingerprint&) = default;
  friend constexpr bool operator<(const fingerprint& x, const fingerprint& y) {
    return x.a != y.a ? x.a < y.a : x.b < y.b;
  }
};

namespace field {

using wide = unsigned __int128;
inline constexpr std::uint64_t p = (std::uint64_t{1} << 61) - 1, q = (std::uint64_t{1} << 62) - 57;

constexpr std::uint64_t product_p(std::uint64_t x, std::uint64_t y) {
  const wide t = wide{x} * y;
  const std::uint64_t r = static_cast<std::uint64_t>(t & p) + static_cast<std::uint64_t>(t >> 61);
  return r >= p ? r - p : r;
}
constexpr std::uint64_t product_q(std::uint64_t x, std::uint64_t y) {
  constexpr wide low = (wide{1} << 62) - 1;
  wide t = wide{x} * y;
  t = (t & low) + (t >> 62) * 57;
  t = (t & low) + (t >> 62) * 57;
  const auto r = static_cast<std::uint64_t>(t);
  return r >= q ? r - q : r;
}
constexpr fingerprint product(const fingerprint& x, const fingerprint& y) {
  return {product_p(x.a, y.a), product_q(x.b, y.b)};
}
constexpr fingerprint sum(const fingerprint& x, const fingerprint& y) {
  const std::uint64_t a = x.a + y.a, b = x.b + y.b;
  return {a >= p ? a - p : a, b >= q ? b - q : b};
}
constexpr fingerprint opposite(const fingerprint& x) {
  return {x.a == 0 ? 0 : p - x.a, x.b == 0 ? 0 : q - x.b};
}
constexpr fingerprint difference(const fingerprint& x, const fingerprint& y) {
  return sum(x, opposite(y));
}
constexpr fingerprint power(fingerprint x, std::uint64_t n_p, std::uint64_t n_q) {
  fingerprint r{1, 1}, y = x;
  for (; n_p > 0; n_p /= 2, x.a = product_p(x.a, x.a))
    if (n_p % 2 == 1) r.a = product_p(r.a, x.a);
  for (; n_q > 0; n_q /= 2, y.b = product_q(y.b, y.b))
    if (n_q % 2 == 1) r.b = product_q(r.b, y.b);
  return r;
}
/// 1 / x, for x other than 0.
constexpr fingerprint inverse(const fingerprint& x) { return power(x, p - 2, q - 2); }

constexpr fingerprint natural(std::uint64_t n) { return {n % p, n % q}; }
constexpr fingerprint integer(std::int64_t n) {
  if (n >= 0) return natural(static_cast<std::uint64_t>(n));
  return opposite(natural(std::uint64_t{0} - static_cast<std::uint64_t>(n)));
}

}  // namespace field

/// Draws a random number from its arguments, always the same one.
class drawing {
 public:
  constexpr drawing() = default;
  constexpr explicit drawing(std::uint64_t what) { add(what); }

  constexpr drawing& add(std::uint64_t n) {
    x_ = mixed((x_ ^ n) + 0x9e3779b97f4a7c15u);
    y_ = mixed((y_ + n) * 0xd6e8feb86659fd93u + 0x632be59bd9b4e019u);
    return *this;
  }
  constexpr drawing& add(std::int64_t n) { return add(static_cast<std::uint64_t>(n)); }
  constexpr drawing& add(int n) { return add(static_cast<std::uint64_t>(n)); }
  constexpr drawing& add(const fingerprint& f) { return add(f.a).add(f.b); }
  constexpr fingerprint drawn() const { return {x_ % field::p, y_ % field::q}; }

 private:
  std::uint64_t x_ = 0x243f6a8885a308d3u, y_ = 0x13198a2e03707344u;

  static constexpr std::uint64_t mixed(std::uint64_t n) {
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
    n = (n ^ n >> 27) * 0x94d049bb133111ebu;
    return n ^ n >> 31;
  }
};

namespace field {
/// Finite numbers exactly; random values for others.
constexpr fingerprint real(double v) {
  const auto bits = std::bit_cast<std::uint64_t>(v);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
  std::uint64_t mantissa = bits & 0xfffffffffffffu;
  if (exponent == 0x7ff) return drawing(mantissa == 0 ? bits : 1).drawn();
  if (exponent > 0) mantissa |= std::uint64_t{1} << 52;
  if (mantissa == 0) return {};
  const int shift = std::countr_zero(mantissa), e = (exponent > 0 ? exponent : 1) - 1075 + shift;
  const auto n = static_cast<std::uint64_t>(e < 0 ? -e : e);
  fingerprint two = power({0, e < 0 ? (q + 1) / 2 : 2}, 0, n);
  two.a = std::uint64_t{1} << (e % 61 + 61) % 61;  // 2^61 = 1
  const fingerprint f = product(natural(mantissa >> shift), two);
  return bits >> 63 != 0 ? opposite(f) : f;
}
}  // namespace field

/// Facts about formulas, by fingerprint: the first one recorded for each.
template <class Fact>
class facts {
 public:
  /// The pointer is invalid after facts are added.
  constexpr const Fact* find(const fingerprint& of) const {
    const int i = places_.find(hash_of(of.a), [&](int k) { return keys_[k] == of; });
    return i < 0 ? nullptr : &list_[i];
  }
  constexpr void add(const fingerprint& of, Fact fact) {
    if (find(of) != nullptr) return;
    keys_.push_back(of);
    list_.push_back(static_cast<Fact&&>(fact));
    places_.insert(static_cast<int>(keys_.size()) - 1, [&](int k) { return hash_of(keys_[k].a); });
  }
  /// Replaces the fact.
  constexpr void put(const fingerprint& of, Fact fact) {
    const int i = places_.find(hash_of(of.a), [&](int k) { return keys_[k] == of; });
    if (i < 0) return add(of, static_cast<Fact&&>(fact));
    list_[i] = static_cast<Fact&&>(fact);
  }

 private:
  vec<fingerprint> keys_;
  vec<Fact> list_;
  place_table places_;
};

}  // namespace partita::prove_detail
