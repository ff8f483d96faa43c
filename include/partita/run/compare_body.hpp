/// Implementation of compare.hpp. It is part of that header, or of the library that is compiled
/// once.
#pragma once

#include <cmath>
#include <cstdio>
#include <limits>

#include <partita/run/compare.hpp>
#include <partita/run/element_text.hpp>
#include <partita/run/kernels/convert.hpp>

namespace partita {

PARTITA_LINKAGE array as_type(const array& a, dtype to) {
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

PARTITA_LINKAGE bool equal(const array& a, const array& b) {
  if (a.type() != b.type()) return false;
  return run_detail::with_type(a.element(), [&]<class T>(std::type_identity<T>) {
    const T *x = a.data<T>(), *y = b.data<T>();
    for (std::int64_t i = 0; i < a.size(); ++i)
      if (!(x[i] == y[i]) && (x[i] == x[i] || y[i] == y[i])) return false;
    return true;
  });
}

PARTITA_LINKAGE double max_difference(const array& a, const array& b) {
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

PARTITA_LINKAGE closeness all_close(const array& a, const array& b, double rtol, double atol) {
  const auto apart = [](const text& t) { return closeness(std::string(t.view())); };
  if (!(a.shape() == b.shape())) return apart(concat("shape ", a.shape(), ", not ", b.shape()));
  const array wide_a = as_type(a, dtype::f64), wide_b = as_type(b, dtype::f64);
  const double *x = wide_a.data<double>(), *y = wide_b.data<double>();
  const auto is_close = [&](std::int64_t i) {
    return x[i] == y[i] ||
           (std::isfinite(y[i]) && std::fabs(x[i] - y[i]) <= atol + rtol * std::fabs(y[i]));
  };
  std::int64_t count = 0, worst = -1;
  double most = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (is_close(i)) continue;
    ++count;
    const double excess = std::fabs(x[i] - y[i]) / (atol + rtol * std::fabs(y[i]));
    if (worst >= 0 && (most != most || excess <= most)) continue;  // the first NaN is worst
    worst = i;
    most = excess;
  }
  if (count == 0) return {};
  text t;
  t << count << " of " << a.size() << (a.size() == 1 ? " element differs" : " elements differ")
    << "; element ";
  run_detail::print_position(t, a.shape(), worst);
  t << " is ";
  run_detail::print_element(t, a, worst);
  t << ", not ";
  run_detail::print_element(t, b, worst);
  const auto number = [&](double v) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.3g", v);
    t << std::string_view(digits);
  };
  const double distance = std::fabs(x[worst] - y[worst]);
  if (!std::isfinite(distance)) return apart(t);
  t << ": apart by ";
  number(distance);
  if (y[worst] != 0) {
    t << ", relative ";
    number(distance / std::fabs(y[worst]));
  }
  t << "; allowed ";
  number(atol + rtol * std::fabs(y[worst]));
  return apart(t);
}

}  // namespace partita
