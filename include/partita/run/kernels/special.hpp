/// Special functions of floating-point elements, one element at a time.
///
/// Errors are within 4 units in the last place of the exact values; lgamma and digamma, where their
///        magnitudes are below 1, are within 4 and 10 epsilon.
#pragma once

#include <cmath>
#include <concepts>
#include <initializer_list>
#include <limits>

namespace partita::run_detail {

struct erfc_lanes {
  static auto one(std::floating_point auto x) { return std::erfc(x); }
};

/// Source    Giles, "Approximating the erfinv function", GPU Computing Gems 2, 2011, table 5, in
///           binary64 and refined by steps of Halley's method
struct erf_inv_lanes {
  template <std::floating_point T>
  static T one(T x) {
    return static_cast<T>(inverse(static_cast<double>(x)));
  }

 private:
  static double inverse(double x) {
    const double magnitude = std::fabs(x);
    if (!(magnitude < 1))
      return magnitude == 1 ? x * std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::quiet_NaN();
    if (magnitude < 1e-8) return x * 0.88622692545275801;  // sqrt(pi) / 2
    double w = -std::log1p(-magnitude * magnitude), y = 0;
    if (w < 5) {
      w -= 2.5;
      for (double c : {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                       0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941})
        y = y * w + c;
    } else if (w < 16) {
      w = std::sqrt(w) - 3;
      for (double c : {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                       0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682})
        y = y * w + c;
    } else {  // from erfc(y) = exp(-y^2) / (sqrt(pi) y), nearly
      w = -std::log(1 - magnitude);
      y = std::sqrt(w - 0.5 * std::log(3.141592653589793 * w));
    }
    y *= magnitude;
    for (int step = 0; step < 3; ++step) {
      const double off =
          magnitude < 0.75 ? std::erf(y) - magnitude : (1 - magnitude) - std::erfc(y);
      const double by = off * 0.88622692545275801 * std::exp(y * y);
      y -= by / (1 + y * by);
    }
    return std::copysign(y, x);
  }
};

struct lgamma_lanes {
  template <std::floating_point T>
  static T one(T x) {
    return static_cast<T>(logarithm(static_cast<double>(x)));
  }

 private:
  /// std::lgamma of glibc writes a global variable, which is a data race between threads.
  static double logarithm(double x) {
#if defined(__GLIBC__) || defined(__APPLE__)
    int sign = 0;
    return ::lgamma_r(x, &sign);
#else
    return std::lgamma(x);
#endif
  }
};

/// Uses psi(1 - x) below 0, psi(x + 1) up to 10, and then the asymptotic series.
struct digamma_lanes {
  template <std::floating_point T>
  static T one(T x) {
    return static_cast<T>(psi(static_cast<double>(x)));
  }

 private:
  static double psi(double x) {
    if (x <= 0 && std::floor(x) == x) return std::numeric_limits<double>::quiet_NaN();
    double sum = 0;
    if (x < 0) {
      constexpr double pi = 3.141592653589793;
      sum = -pi / std::tan(pi * (x - std::nearbyint(x)));
      x = 1 - x;
    }
    for (; x < 10; ++x) sum -= 1 / x;
    const double s = 1 / (x * x);
    double series = -1. / 12;
    for (double c : {691. / 32760, -1. / 132, 1. / 240, -1. / 252, 1. / 120, -1. / 12})
      series = series * s + c;
    return sum + (std::log(x) - 0.5 / x + series * s);
  }
};

}  // namespace partita::run_detail
