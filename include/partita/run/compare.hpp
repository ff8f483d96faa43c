/// Comparison of arrays, and conversion of their element type.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <partita/run/array.hpp>
#include <partita/support/separate.hpp>

namespace partita {

/// Converts an array to another element type by the rules of `op::convert`.
PARTITA_LINKAGE array as_type(const array& a, dtype to);

/// True if type, shape and all elements are equal. A NaN equals a NaN, and 0 equals -0.
///
/// Qualify the call with its namespace if an argument is an xtensor container, because xtensor has
/// an `equal` too.
PARTITA_LINKAGE bool equal(const array& a, const array& b);

/// Returns the maximum of |a[i] - b[i]|. It is infinite if the shapes differ, or if only one of two
/// elements is NaN or infinite. Two NaN differ by 0, as do two infinities of one sign, so that a
/// NaN that both programs compute is not a difference; `all_close` is stricter.
PARTITA_LINKAGE double max_difference(const array& a, const array& b);

/// The result of all_close: true, or the place and size of the largest difference. Tests print this
/// text in place of `false`.
class closeness {
 public:
  closeness() = default;
  /// Makes a result from the description of a difference; empty means close.
  explicit closeness(std::string apart) : apart_(std::move(apart)) {}
  operator bool() const { return apart_.empty(); }
  const std::string& apart() const { return apart_; }
  friend std::ostream& operator<<(std::ostream& out, const closeness& c) {
    return out << (c ? std::string_view("all close") : std::string_view(c.apart_));
  }

 private:
  std::string apart_;
};

/// True if |a[i] - b[i]| <= atol + rtol |b[i]| everywhere, as in NumPy; a NaN is close to nothing.
/// Shapes must be equal; element types may differ. Otherwise the text names the element that
/// exceeds its bound by most, both values, their distance, and the number of elements that differ.
PARTITA_LINKAGE closeness all_close(const array& a, const array& b, double rtol = 1e-5,
                                    double atol = 1e-6);

}  // namespace partita

#if !defined(PARTITA_SEPARATE)
#include <partita/run/compare_body.hpp>
#endif
