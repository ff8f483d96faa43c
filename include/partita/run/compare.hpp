/// Comparing arrays, and changing their element type.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <partita/run/array.hpp>
#include <partita/support/separate.hpp>

namespace partita {

/// The same elements as another type, by the rules of `op::convert`.
PARTITA_LINKAGE array as_type(const array& a, dtype to);

/// Are type, shape and all elements equal? A NaN equals a NaN, and 0 equals -0.
///
/// Call it with its namespace where an argument is an xtensor container: xtensor has an `equal`
/// too.
PARTITA_LINKAGE bool equal(const array& a, const array& b);

/// The greatest |a[i] - b[i]|; infinite if the shapes differ or where only one is NaN or infinite.
/// Two NaN differ by 0, as do two infinities of one sign, so that a NaN that both programs compute
/// is no difference; `all_close` is stricter.
PARTITA_LINKAGE double max_difference(const array& a, const array& b);

/// The result of all_close: true, or the place and size of the largest difference. Tests show the
/// text: it is printed in place of `false`.
class closeness {
 public:
  closeness() = default;
  /// `apart`: the description of the difference; empty if there is none.
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
