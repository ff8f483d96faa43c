/// The knowledge of random programs about their values: the interval of the elements, and whether
/// they are exact.
///
/// Integers are exact in any order of sums and products, since overflow wraps. Integer-valued
/// floats are kept within the range that the element type holds exactly. Elementwise functions
/// return equal bits for equal operands, wherever an element is stored, so real values are exact
/// too, until they are summed: such a sum has a tolerance, and is not used further.
///
/// If a case has floats of any value, an interval is that of the finite elements; NaN, infinities
/// and -0 may be among them. A sum of these is determined, since its finite part cannot overflow:
/// NaN if there is a NaN or both infinities, otherwise infinite if there is an infinity. A float
/// that may leave the exact range is `anything`, and is not summed.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "../data.hpp"

namespace random_test {

namespace pt = partita;
using data::random;
using pt::dtype;
using pt::shape;
using pt::tensor_type;
using pt::value_id;
using ints = std::vector<std::int64_t>;

struct value_info {
  double lo = 0, hi = 0;
  bool integer = true;
  double tolerance = 0;  ///< maximum difference that another order of sums may make
  bool unbounded() const { return !integer && tolerance == 0 && std::isinf(hi); }
  double greatest() const { return std::max(std::fabs(lo), std::fabs(hi)); }
  bool within(const value_info& other) const {
    return lo >= other.lo && hi <= other.hi && (integer || !other.integer);
  }
};

/// Floats of any value, which only elementwise functions and extrema accept.
inline constexpr value_info anything{-std::numeric_limits<double>::infinity(),
                                     std::numeric_limits<double>::infinity(), false};

inline value_info all_of(dtype t) {
  if (t == dtype::u64) return {0, 0x1p64};
  return {static_cast<double>(pt::op::least_integer(t)),
          static_cast<double>(pt::op::greatest_integer(t))};
}
/// Returns the interval of integers, which wrap if they leave their type.
inline value_info wrapped(dtype t, const value_info& i) {
  return pt::is_floating(t) || i.within(all_of(t)) ? i : all_of(t);
}
/// True if floats of this kind are exact, or are real numbers that stay small.
inline bool fits(dtype t, const value_info& i) {
  if (!pt::is_floating(t)) return true;
  if (!i.integer) return i.greatest() <= (pt::size_of(t) == 2 ? 1e3 : 1e6);
  const double exact_up_to = t == dtype::f64    ? 1e15
                             : t == dtype::f32  ? 0x1p24
                             : t == dtype::bf16 ? 0x1p8
                                                : 0x1p11;
  return i.greatest() <= exact_up_to;
}
/// Returns half the distance between 1 and the next number.
inline double rounding_of(dtype t) {
  return t == dtype::f64 ? 0x1p-53 : t == dtype::f32 ? 0x1p-24 : t == dtype::f16 ? 0x1p-11 : 0x1p-8;
}

/// True if the bits are equal, including signs of zeros; all NaN are equal.
inline bool same_bits(const pt::array& a, const pt::array& b) {
  if (a.type() != b.type() || !pt::is_floating(a.type().element))
    return a.type() == b.type() && pt::equal(a, b);
  const pt::array wide_a = pt::as_type(a, dtype::f64), wide_b = pt::as_type(b, dtype::f64);
  const double *x = wide_a.data<double>(), *y = wide_b.data<double>();
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const bool nan = std::isnan(x[i]) && std::isnan(y[i]);
    if (!nan && (x[i] != y[i] || std::signbit(x[i]) != std::signbit(y[i]))) return false;
  }
  return true;
}

inline value_info product(const value_info& x, const value_info& y) {
  if (!std::isfinite(x.greatest()) || !std::isfinite(y.greatest())) return anything;
  const double c[] = {x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi};
  return {*std::min_element(c, c + 4), *std::max_element(c, c + 4), x.integer && y.integer};
}
inline value_info either(const value_info& x, const value_info& y) {
  return {std::min(x.lo, y.lo), std::max(x.hi, y.hi), x.integer && y.integer,
          std::max(x.tolerance, y.tolerance)};
}
/// Returns a sum of `n` elements in `each`: exact for integers, otherwise bounded and not used
/// further.
inline value_info sum(const value_info& each, std::int64_t n, dtype t) {
  if (n == 0) return {0, 0};
  const auto count = static_cast<double>(n);
  value_info out{std::min(each.lo * count, 0.0), std::max(each.hi * count, 0.0), each.integer};
  // |error| <= (n - 1) eps sum|x| for any order (Higham, section 4.2); both runs have one.
  if (!each.integer) out.tolerance = 2 * (count + 2) * rounding_of(t) * count * each.greatest();
  return out;
}
/// Returns `n` elements in `each`, at least one, combined in any order.
inline value_info combined(pt::combiner c, const value_info& each, std::int64_t n, dtype t) {
  switch (c) {
    case pt::combiner::add:
      return sum(each, n, t);
    case pt::combiner::multiply: {
      const auto count = static_cast<double>(n);
      const double bound = std::pow(std::max(1.0, each.greatest()), count);
      value_info out{-bound, bound, each.integer};
      // (1 + eps)^(n - 1) |product| for any order, in both runs.
      if (!each.integer) out.tolerance = 4 * count * rounding_of(t) * bound;
      return out;
    }
    case pt::combiner::logical_and:
    case pt::combiner::logical_or:
      return all_of(t);
    default:
      return each;
  }
}
/// Returns the combiner's result for no elements.
inline value_info identity_of(pt::combiner c, dtype t) {
  const double infinite = std::numeric_limits<double>::infinity();
  switch (c) {
    case pt::combiner::add:
      return {0, 0};
    case pt::combiner::multiply:
      return {1, 1};
    default:
      return pt::is_floating(t) ? value_info{-infinite, infinite} : all_of(t);
  }
}

}  // namespace random_test
