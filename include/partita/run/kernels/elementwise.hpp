/// The elementwise ops on blocks of elements: one function per op and computed type. Functions of
/// floats are in math.hpp, of bits in integer.hpp.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

#include <partita/op/registry.hpp>
#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/convert.hpp>
#include <partita/run/kernels/math.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

// An op's computation is a class with one of
//   one(x, ...)       the result of one element,
//   lanes(x, ...)     an Eigen expression of arrays,
//   run(n, x, z)      n elements from x to z, n a multiple of `lanes`,
// for the types that it supports; `on_booleans`, if present, replaces it for i1.

// Sums, differences, products and quotients of floats are links of chains (chain.hpp), and so are
// exp, logistic and tanh of binary32.
/// `F`: a function object such as std::plus<>; integers wrap.
template <class F>
struct arithmetic_lanes {
  template <class T>
  static T one(T x, T y) {
    if constexpr (std::is_floating_point_v<T>)
      return F()(x, y);
    else
      return static_cast<T>(F()(wrapping<T>(x), wrapping<T>(y)));
  }
};
struct add_lanes : arithmetic_lanes<std::plus<>> {
  using on_booleans = or_lanes;
};
struct subtract_lanes : arithmetic_lanes<std::minus<>> {};
struct multiply_lanes : arithmetic_lanes<std::multiplies<>> {
  using on_booleans = and_lanes;
};
struct divide_lanes {
  /// x / 0 is -1 (all bits), and minimum / -1 wraps; StableHLO leaves both open.
  template <std::integral T>
  static T one(T x, T y) {
    if (y == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>)
      if (y == -1) return static_cast<T>(wrapping<T>(0) - wrapping<T>(x));
    return static_cast<T>(x / y);
  }
};
struct remainder_lanes {
  template <std::floating_point T>
  static T one(T x, T y) {
    return std::fmod(x, y);
  }
  template <std::integral T>
  static T one(T x, T y) {
    if (y == 0) return x;
    if constexpr (std::is_signed_v<T>)
      if (y == -1) return 0;
    return static_cast<T>(x % y);
  }
};
struct negate_lanes {
  template <std::integral T>
  static T one(T x) {
    return subtract_lanes::one(T(0), x);
  }
};
/// Returns the bits of a float as an unsigned integer.
template <std::floating_point T>
auto float_bits(T x) {
  return std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(x);
}
/// IEEE 754 (2019) maximum and minimum. If an operand is NaN, it is the result (of two, the first).
/// -0 is less than +0, so that the result does not depend on the order of the operands.
template <bool Maximum>
struct extreme_lanes {
  template <std::integral T>
  static T one(T x, T y) {
    return (Maximum ? x > y : x < y) ? x : y;
  }
  template <std::floating_point T>
  static T one(T x, T y) {
    const T chosen = ((x != x) | (Maximum ? x > y : x < y)) ? x : y;
    const auto a = float_bits(x), b = float_bits(y);
    return x == y ? std::bit_cast<T>(Maximum ? a & b : a | b) : chosen;
  }
};
using maximum_lanes = extreme_lanes<true>;
using minimum_lanes = extreme_lanes<false>;
struct clamp_lanes {
  template <class T>
  static T one(T low, T x, T high) {
    return minimum_lanes::one(maximum_lanes::one(x, low), high);
  }
};
struct abs_lanes {
  static auto lanes(const auto& x) { return x.abs(); }
  template <std::integral T>
  static T one(T x) {
    return x < 0 ? negate_lanes::one(x) : x;
  }
};
struct sign_lanes {
  template <std::floating_point T>
  static T one(T x) {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;
  }
  template <std::integral T>
  static T one(T x) {
    return static_cast<T>((x > 0) - (x < 0));
  }
};
struct is_finite_lanes {
  template <std::floating_point T>
  static std::uint8_t one(T x) {
    return std::fabs(x) <= std::numeric_limits<T>::max();
  }
};

template <class T, int>
using repeated = T;
template <class F, class T, int... I>
concept has_one = requires(repeated<T, I>... x) {
  F::one(x...);
};
template <class F, class T, int... I>
concept has_lanes = std::is_floating_point_v<T> && requires(const_lane_map<repeated<T, I>>... x) {
  F::lanes(x...);
};
template <class F, class T>
concept has_run = std::is_floating_point_v<T> && requires(const T* x, T* z) {
  F::run(std::int64_t(0), x, z);
};

/// Computes an op with the operands I...
template <class F, class T, int... I>
void map_block(std::int64_t n, const void* const* in, void* out) {
  const T* const x[] = {static_cast<const T*>(in[I])...};
  if constexpr (has_run<F, T>) {
    F::run(n, x[0], static_cast<T*>(out));
  } else if constexpr (has_lanes<F, T, I...>) {
    lane_map<T>(static_cast<T*>(out), n) = F::lanes(const_lane_map<T>(x[I], n)...);
  } else {
    auto* __restrict z = static_cast<decltype(F::one(x[I][0]...))*>(out);
    for_lanes(n, [=](std::int64_t i) { z[i] = F::one(x[I][i]...); });
  }
}

/// `Holds`: a function object such as std::less<>.
template <class Holds>
struct compare_lanes {
  template <class T>
  static std::uint8_t one(T x, T y) {
    return Holds()(x, y);
  }
};

template <class Bits>
void select_block(std::int64_t n, const void* const* in, void* out) {
  const auto* __restrict p = static_cast<const std::uint8_t*>(in[0]);
  const auto* __restrict x = static_cast<const Bits*>(in[1]);
  const auto* __restrict y = static_cast<const Bits*>(in[2]);
  auto* __restrict z = static_cast<Bits*>(out);
  for_lanes(n, [=](std::int64_t i) { z[i] = p[i] ? x[i] : y[i]; });
}

template <class F, class T, int... I>
constexpr block_function map_of(std::integer_sequence<int, I...>) {
  if constexpr (has_run<F, T> || has_lanes<F, T, I...> || has_one<F, T, I...>)
    return &map_block<F, T, I...>;
  else
    return nullptr;
}
/// Returns the function of an op with `Operands` operands of type `t`; null if it does not support
/// that type, or if it is a link of a chain for it.
template <class F, int Operands, bool LinksFloats = false>
constexpr block_function map_function(dtype t) {
  constexpr std::make_integer_sequence<int, Operands> operands;
  if constexpr (requires { typename F::on_booleans; })
    if (t == dtype::boolean) return map_of<typename F::on_booleans, std::uint8_t>(operands);
  if (t == dtype::boolean) t = dtype::u8;  // in one byte, too
  return with_computed_type(t, [&]<class T>(std::type_identity<T>) -> block_function {
    if constexpr (std::is_same_v<T, bool> || (LinksFloats && std::is_floating_point_v<T>))
      return nullptr;
    else
      return map_of<F, T>(operands);
  });
}

constexpr block_function compare_function(ops::direction d, dtype t) {
  using enum ops::direction;
  switch (d) {
    case eq:
      return map_function<compare_lanes<std::equal_to<>>, 2>(t);
    case ne:
      return map_function<compare_lanes<std::not_equal_to<>>, 2>(t);
    case lt:
      return map_function<compare_lanes<std::less<>>, 2>(t);
    case le:
      return map_function<compare_lanes<std::less_equal<>>, 2>(t);
    case gt:
      return map_function<compare_lanes<std::greater<>>, 2>(t);
    case ge:
      return map_function<compare_lanes<std::greater_equal<>>, 2>(t);
  }
  return nullptr;
}
constexpr block_function select_function(dtype t) {
  return with_bits(size_of(computed(t)), []<class T>(std::type_identity<T>) -> block_function {
    return &select_block<T>;
  });
}

}  // namespace partita::run_detail
