/// Test data: arrays of small integers, on which sums and products are exact in every order.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

#include "slow_links.hpp"

namespace data {

namespace pt = partita;

/// A generator that gives the same numbers on every machine (splitmix64).
struct random {
  std::uint64_t state = 1;
  std::uint64_t next() {
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Returns a number, uniform in [low, high].
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(std::int64_t n) { return in(1, n) == 1; }
  template <class List>
  auto pick(const List& list) {
    return list[static_cast<std::size_t>(in(0, static_cast<std::int64_t>(std::size(list)) - 1))];
  }
};

inline pt::array fill(const pt::tensor_type& type, auto value) {
  pt::array a(pt::tensor_type{pt::dtype::f64, type.shape});
  double* x = a.mutable_data<double>();
  for (std::int64_t i = 0; i < a.size(); ++i) x[i] = static_cast<double>(value(i));
  return pt::as_type(a, type.element);
}
/// Returns integers in [low, high]; for unsigned types from 0, for i1 0 and 1.
inline pt::array integers(const pt::tensor_type& type, random& r, std::int64_t low = -2,
                          std::int64_t high = 2) {
  if (pt::is_unsigned(type.element) && low < 0) low = 0;
  if (type.element == pt::dtype::boolean) low = 0, high = 1;
  return fill(type, [&](std::int64_t) { return r.in(low, high); });
}
inline std::vector<pt::array> arguments(const pt::program& p, std::uint64_t seed = 1) {
  random r{seed};
  std::vector<pt::array> out;
  for (int i = 0; i < p.input_count(); ++i) out.push_back(integers(p.input_type(i), r));
  return out;
}

/// Returns the same tactic, which does not settle conflicts between its layouts.
template <class Tactic>
constexpr auto unsettled(const Tactic& t) {
  return pt::amalgamated(t.name(), t);
}

inline std::string str(const pt::text& t) { return std::string(t.view()); }
/// Returns the message of the error that f throws, or "".
inline std::string thrown(const auto& f) {
  try {
    f();
  } catch (const pt::error& e) {
    return e.what();
  }
  return "";
}

}  // namespace data
