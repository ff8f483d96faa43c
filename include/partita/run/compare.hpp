/// Comparing arrays, and changing their element type.
#pragma once

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

/// |a[i] - b[i]| <= atol + rtol |b[i]| everywhere, as in NumPy: a NaN is close to nothing. False if
/// the shapes differ; the element types may.
PARTITA_LINKAGE bool all_close(const array& a, const array& b, double rtol = 1e-5,
                               double atol = 1e-6);

}  // namespace partita

#if !defined(PARTITA_SEPARATE)
#include <partita/run/compare_body.hpp>
#endif
