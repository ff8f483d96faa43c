/// The elementwise ops on blocks of elements: one function per op and computed type.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <Eigen/Core>

#include <partita/op/registry.hpp>
#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/convert.hpp>

namespace partita::detail {

template <class T>
using lane_map = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>, Eigen::Aligned64>;
template <class T>
using const_lane_map = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>, Eigen::Aligned64>;

/// An integer type in which overflow wraps.
template <class T>
using wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

// Binary ops: `lanes` on Eigen expressions of floats, `one` on integers.
struct add_lanes {
  template <class X, class Y>
  static auto lanes(const X& x, const Y& y) {
    return x + y;
  }
  template <class T>
  static T one(T x, T y) {
    return static_cast<T>(wrapping<T>(x) + wrapping<T>(y));
  }
};
struct subtract_lanes {
  template <class X, class Y>
  static auto lanes(const X& x, const Y& y) {
    return x - y;
  }
  template <class T>
  static T one(T x, T y) {
    return static_cast<T>(wrapping<T>(x) - wrapping<T>(y));
  }
};
struct multiply_lanes {
  template <class X, class Y>
  static auto lanes(const X& x, const Y& y) {
    return x * y;
  }
  template <class T>
  static T one(T x, T y) {
    return static_cast<T>(wrapping<T>(x) * wrapping<T>(y));
  }
};
struct divide_lanes {
  template <class X, class Y>
  static auto lanes(const X& x, const Y& y) {
    return x / y;
  }
  /// x / 0 is -1 (all bits), least / -1 wraps; StableHLO leaves both open.
  template <class T>
  static T one(T x, T y) {
    if (y == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>)
      if (y == -1) return static_cast<T>(wrapping<T>(0) - wrapping<T>(x));
    return static_cast<T>(x / y);
  }
};
/// A NaN in either operand is the result.
struct maximum_lanes {
  template <class T>
  static T one(T x, T y) {
    return ((x != x) | (x > y)) ? x : y;
  }
};
struct minimum_lanes {
  template <class T>
  static T one(T x, T y) {
    return ((x != x) | (x < y)) ? x : y;
  }
};

template <class F, class T>
concept has_lanes = requires(const_lane_map<T> x) {
  F::lanes(x, x);
};

template <class F, class T>
void binary_block(std::int64_t n, const void* const* in, void* out) {
  const auto* __restrict x = static_cast<const T*>(in[0]);
  const auto* __restrict y = static_cast<const T*>(in[1]);
  auto* __restrict z = static_cast<T*>(out);
  if constexpr (std::is_floating_point_v<T> && has_lanes<F, T>)
    lane_map<T>(z, n) = F::lanes(const_lane_map<T>(x, n), const_lane_map<T>(y, n));
  else
    for_lanes(n, [=](std::int64_t i) { z[i] = F::one(x[i], y[i]); });
}

template <class T>
void negate_block(std::int64_t n, const void* const* in, void* out) {
  const auto* __restrict x = static_cast<const T*>(in[0]);
  auto* __restrict z = static_cast<T*>(out);
  if constexpr (std::is_floating_point_v<T>)
    lane_map<T>(z, n) = -const_lane_map<T>(x, n);
  else
    for_lanes(n, [=](std::int64_t i) { z[i] = subtract_lanes::one(T(0), x[i]); });
}

// Functions. Eigen's vectorised ones clamp their operand, so the ends and NaN are put right after.
struct exp_lanes {
  template <class T>
  static void run(std::int64_t n, const T* __restrict x, T* __restrict z) {
    lane_map<T>(z, n) = const_lane_map<T>(x, n).exp();
    constexpr T least = sizeof(T) == 4 ? T(-88.3762626647949) : T(-709.78271289338397);
    for_lanes(n, [=](std::int64_t i) { z[i] = x[i] < least ? T(0) : x[i] != x[i] ? x[i] : z[i]; });
  }
};
struct log_lanes {
  template <class T>
  static void run(std::int64_t n, const T* __restrict x, T* __restrict z) {
    lane_map<T>(z, n) = const_lane_map<T>(x, n).log();
  }
};
struct tanh_lanes {
  template <class T>
  static void run(std::int64_t n, const T* __restrict x, T* __restrict z) {
    lane_map<T>(z, n) = const_lane_map<T>(x, n).tanh();
    for_lanes(n, [=](std::int64_t i) { z[i] = x[i] != x[i] ? x[i] : z[i]; });
  }
};
/// Source    the rational approximation of Eigen and XLA for binary32; libm for binary64
struct erf_lanes {
  static void run(std::int64_t n, const float* __restrict x, float* __restrict z) {
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
      Eigen::Map<chunk>(z + i) = v * p / q;
    }
    for_lanes(n, [=](std::int64_t i) { z[i] = x[i] != x[i] ? x[i] : z[i]; });
  }
  static void run(std::int64_t n, const double* __restrict x, double* __restrict z) {
    for_lanes(n, [=](std::int64_t i) { z[i] = std::erf(x[i]); });
  }
};
/// Correctly rounded; Eigen's own approximates on some machines.
struct sqrt_lanes {
  template <class T>
  static void run(std::int64_t n, const T* __restrict x, T* __restrict z) {
    for_lanes(n, [=](std::int64_t i) { z[i] = std::sqrt(x[i]); });
  }
};
struct rsqrt_lanes {
  template <class T>
  static void run(std::int64_t n, const T* __restrict x, T* __restrict z) {
    for_lanes(n, [=](std::int64_t i) { z[i] = T(1) / std::sqrt(x[i]); });
  }
};
template <class F, class T>
void math_block(std::int64_t n, const void* const* in, void* out) {
  F::run(n, static_cast<const T*>(in[0]), static_cast<T*>(out));
}

template <ops::direction D, class T>
void compare_block(std::int64_t n, const void* const* in, void* out) {
  const auto* __restrict x = static_cast<const T*>(in[0]);
  const auto* __restrict y = static_cast<const T*>(in[1]);
  auto* __restrict z = static_cast<std::uint8_t*>(out);
  for_lanes(n, [=](std::int64_t i) {
    if constexpr (D == ops::direction::eq) z[i] = x[i] == y[i];
    if constexpr (D == ops::direction::ne) z[i] = x[i] != y[i];
    if constexpr (D == ops::direction::lt) z[i] = x[i] < y[i];
    if constexpr (D == ops::direction::le) z[i] = x[i] <= y[i];
    if constexpr (D == ops::direction::gt) z[i] = x[i] > y[i];
    if constexpr (D == ops::direction::ge) z[i] = x[i] >= y[i];
  });
}

template <class Bits>
void select_block(std::int64_t n, const void* const* in, void* out) {
  const auto* __restrict p = static_cast<const std::uint8_t*>(in[0]);
  const auto* __restrict x = static_cast<const Bits*>(in[1]);
  const auto* __restrict y = static_cast<const Bits*>(in[2]);
  auto* __restrict z = static_cast<Bits*>(out);
  for_lanes(n, [=](std::int64_t i) { z[i] = p[i] ? x[i] : y[i]; });
}

// The tables: a null entry means that the op does not take that type.
template <class F>
block_function binary_function(dtype t) {
  switch (t) {
    case dtype::f32:
      return &binary_block<F, float>;
    case dtype::f64:
      return &binary_block<F, double>;
    case dtype::i32:
      return &binary_block<F, std::int32_t>;
    case dtype::i64:
      return &binary_block<F, std::int64_t>;
    case dtype::u8:
      return &binary_block<F, std::uint8_t>;
    default:
      return nullptr;
  }
}
template <class F>
block_function math_function(dtype t) {
  if (t == dtype::f32) return &math_block<F, float>;
  return t == dtype::f64 ? &math_block<F, double> : nullptr;
}
template <class T>
block_function compare_function(ops::direction d) {
  constexpr block_function table[] = {
      &compare_block<ops::direction::eq, T>, &compare_block<ops::direction::ne, T>,
      &compare_block<ops::direction::lt, T>, &compare_block<ops::direction::le, T>,
      &compare_block<ops::direction::gt, T>, &compare_block<ops::direction::ge, T>};
  return table[static_cast<int>(d)];
}

}  // namespace partita::detail
