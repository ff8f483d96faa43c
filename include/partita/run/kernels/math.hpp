/// Functions of floating-point elements.
///
/// Errors are within 4 units in the last place of the exact values; in binary32 within 8 (tanh) and
///        9 (erf). exp, logistic and tanh of binary32 are links of chains (chain.hpp). Eigen's fast
///        functions are inexact at the ends of their range (NaN, infinities, subnormals): libm
///        computes elements there. It also computes the functions that Eigen lacks.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

#include <Eigen/Core>

#include <partita/run/kernels/convert.hpp>
#include <partita/run/kernels/integer.hpp>

namespace partita::run_detail {

template <class T>
using lane_map = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>, Eigen::Aligned64>;
template <class T>
using const_lane_map = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>, Eigen::Aligned64>;

/// Corrects the elements of z = f(x) whose x is not in [low, high].
template <class T, class Exact>
void outside(T low, T high, std::int64_t n, const T* __restrict x, T* __restrict z, Exact exact) {
  wrapping<T> found[lanes] = {};
  for (std::int64_t i = 0; i < n; i += lanes)
    for (std::int64_t j = 0; j < lanes; ++j)
      found[j] |= static_cast<wrapping<T>>(!((x[i + j] >= low) & (x[i + j] <= high)));
  if (std::all_of(found, found + lanes, [](auto f) { return f == 0; })) return;
  for (std::int64_t i = 0; i < n; ++i)
    if (!(x[i] >= low && x[i] <= high)) z[i] = exact(x[i]);
}
/// Corrects NaN elements.
template <class T>
void keep_nan(std::int64_t n, const T* x, T* z) {
  constexpr T inf = std::numeric_limits<T>::infinity();
  outside(-inf, inf, n, x, z, [](T v) { return v; });
}

struct exp_lanes {
  static void run(std::int64_t n, const double* x, double* z) {
    lane_map<double>(z, n) = const_lane_map<double>(x, n).exp();
    // exp rounds to 0 below -746; masks are such values, so it should not take long.
    outside(-708., 708., n, x, z, [](double v) { return v < -746 ? 0. : std::exp(v); });
  }
};
struct log_lanes {
  template <class T>
  static void run(std::int64_t n, const T* x, T* z) {
    using limits = std::numeric_limits<T>;
    lane_map<T>(z, n) = const_lane_map<T>(x, n).log();
    outside(limits::min(), limits::max(), n, x, z, [](T v) { return std::log(v); });
  }
};
struct logistic_lanes {
  static void run(std::int64_t n, const double* x, double* z) {
    lane_map<double>(z, n) = 1. / (1. + (-const_lane_map<double>(x, n)).exp());
    outside(-708., 708., n, x, z,
            [](double v) { return v < 0 ? std::exp(v) : 1. / (1. + std::exp(-v)); });
  }
};
struct tanh_lanes {
  static void run(std::int64_t n, const double* x, double* z) {
    lane_map<double>(z, n) = const_lane_map<double>(x, n).tanh();
    keep_nan(n, x, z);
  }
};
/// Source    the rational approximation of Eigen and XLA for binary32; libm for binary64
struct erf_lanes {
  static void run(std::int64_t n, const float* x, float* z) {
    using chunk = Eigen::Array<float, lanes, 1>;
    for (std::int64_t i = 0; i < n; i += lanes) {
      const chunk v = Eigen::Map<const chunk>(x + i).min(4.f).max(-4.f), s = v * v;
      chunk p = s * -2.72614225801306e-10f + 2.77068142495902e-08f;
      p = s * p + -2.10102402082508e-06f;
      p = s * p + -5.69250639462346e-05f;
      p = s * p + -7.34990630326855e-04f;
      p = s * p + -2.95459980854025e-03f;
      p = s * p + -1.60960333262415e-02f;
      chunk q = s * -1.45660718464996e-05f + -2.13374055278905e-04f;
      q = s * q + -1.68282697438203e-03f;
      q = s * q + -7.37332916720468e-03f;
      q = s * q + -1.42647390514189e-02f;
      Eigen::Map<chunk>(z + i) = v * (p / q);
    }
    keep_nan(n, x, z);
  }
  static void run(std::int64_t n, const double* __restrict x, double* __restrict z) {
    for_lanes(n, [=](std::int64_t i) { z[i] = std::erf(x[i]); });
  }
};
struct sine_lanes {
  static auto lanes(const auto& x) { return x.sin(); }
};
struct cosine_lanes {
  static auto lanes(const auto& x) { return x.cos(); }
};

/// Correctly rounded; Eigen's version approximates on some machines.
struct sqrt_lanes {
  static auto one(std::floating_point auto x) { return std::sqrt(x); }
};
struct rsqrt_lanes {
  static auto one(std::floating_point auto x) { return 1 / std::sqrt(x); }
};
/// Eigen's version loses the sign of a zero on some machines.
struct floor_lanes {
  static auto one(std::floating_point auto x) { return std::floor(x); }
};
struct ceil_lanes {
  static auto one(std::floating_point auto x) { return std::ceil(x); }
};
struct round_nearest_even_lanes {
  static auto one(std::floating_point auto x) { return std::nearbyint(x); }
};
struct round_nearest_away_lanes {
  static auto one(std::floating_point auto x) { return std::round(x); }
};

struct expm1_lanes {
  static auto one(std::floating_point auto x) { return std::expm1(x); }
};
struct log1p_lanes {
  static auto one(std::floating_point auto x) { return std::log1p(x); }
};
struct cbrt_lanes {
  static auto one(std::floating_point auto x) { return std::cbrt(x); }
};
struct tan_lanes {
  static auto one(std::floating_point auto x) { return std::tan(x); }
};
struct atan2_lanes {
  template <std::floating_point T>
  static T one(T y, T x) {
    return std::atan2(y, x);
  }
};
struct power_lanes {
  template <std::floating_point T>
  static T one(T x, T y) {
    return std::pow(x, y);
  }
  template <std::integral T>
  static T one(T x, T y) {
    return integer_power(x, y);
  }
};

}  // namespace partita::run_detail
