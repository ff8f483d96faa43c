/// Comparing arrays, and changing their element type.
#pragma once

#include <cmath>
#include <limits>

#include <partita/run/array.hpp>
#include <partita/run/kernels/convert.hpp>

namespace partita {

/// The same elements as another type, by the rules of `op::convert`.
inline array as_type(const array& a, dtype to) {
  if (a.element() == to) return a;
  array out(tensor_type{to, a.shape()},
            run_detail::allocate(run_detail::padded_bytes({to, a.shape()})));
  run_detail::with_type(a.element(), [&]<class From>(std::type_identity<From>) {
    run_detail::with_type(to, [&]<class To>(std::type_identity<To>) {
      const From* x = a.data<From>();
      To* y = out.mutable_data<To>();
      for (std::int64_t i = 0; i < a.size(); ++i) y[i] = run_detail::convert_element<To>(x[i]);
    });
  });
  return out;
}

/// Are type, shape and all elements equal? A NaN equals a NaN, and 0 equals -0.
///
/// Call it with its namespace where an argument is an xtensor container: xtensor has an `equal`
/// too.
inline bool equal(const array& a, const array& b) {
  if (a.type() != b.type()) return false;
  return run_detail::with_type(a.element(), [&]<class T>(std::type_identity<T>) {
    const T *x = a.data<T>(), *y = b.data<T>();
    for (std::int64_t i = 0; i < a.size(); ++i)
      if (!(x[i] == y[i]) && (x[i] == x[i] || y[i] == y[i])) return false;
    return true;
  });
}

/// The greatest |a[i] - b[i]|; infinite if the shapes differ or where only one is NaN or infinite.
/// Two NaN differ by 0, as do two infinities of one sign, so that a NaN that both programs compute
/// is no difference; `all_close` is stricter.
inline double max_difference(const array& a, const array& b) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (!(a.shape() == b.shape())) return infinite;
  const array wide_a = as_type(a, dtype::f64), wide_b = as_type(b, dtype::f64);
  const double *x = wide_a.data<double>(), *y = wide_b.data<double>();
  double worst = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (x[i] == y[i] || (x[i] != x[i] && y[i] != y[i])) continue;
    const double d = std::fabs(x[i] - y[i]);
    if (!(d <= worst)) worst = d == d ? d : infinite;
  }
  return worst;
}

/// |a[i] - b[i]| <= atol + rtol |b[i]| everywhere, as in NumPy: a NaN is close to nothing. False if
/// the shapes differ; the element types may.
inline bool all_close(const array& a, const array& b, double rtol = 1e-5, double atol = 1e-6) {
  if (!(a.shape() == b.shape())) return false;
  const array wide_a = as_type(a, dtype::f64), wide_b = as_type(b, dtype::f64);
  const double *x = wide_a.data<double>(), *y = wide_b.data<double>();
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (x[i] != y[i] &&
        !(std::isfinite(y[i]) && std::fabs(x[i] - y[i]) <= atol + rtol * std::fabs(y[i])))
      return false;
  return true;
}

}  // namespace partita
