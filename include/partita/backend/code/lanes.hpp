/// The elements of a loop, sixteen at a time: what files of device code and `compiled` compute
/// with.
///
/// Every operation rounds its result to the element type and no product is fused with the sum that
/// follows, whatever the compiler's flags, so that the bits are those of the kernels.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <partita/run/kernels/chain.hpp>
#include <partita/run/kernels/convert.hpp>
#include <partita/run/kernels/elementwise.hpp>
#include <partita/run/kernels/random.hpp>

namespace partita::code {

using run_detail::lanes;

namespace kernels = run_detail;  ///< as files of device code name them

/// The type that elements are computed in: binary32 for the 16-bit floats, a byte for i1.
template <class T>
using lane_of = std::conditional_t<std::is_same_v<T, bf16> || std::is_same_v<T, f16>, float,
                                   std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>;
template <class T>
inline constexpr bool in_packets = std::is_floating_point_v<lane_of<T>>;
template <class T>
inline constexpr bool is_rounded = in_packets<T> && !std::is_same_v<T, lane_of<T>>;

/// Sixteen elements of type T: floats in vector registers, others in memory.
template <class T, bool = in_packets<T>>
struct pack {
  using lane = lane_of<T>;
  alignas(run_detail::alignment) lane at[lanes];

  const lane* elements() const { return at; }
  static pack of(const lane* x) {
    pack p;
    std::copy_n(x, lanes, p.at);
    return p;
  }
};
template <class T>
struct pack<T, true> {
  using lane = lane_of<T>;
  using packet = typename Eigen::internal::packet_traits<lane>::type;
  static constexpr int width = Eigen::internal::packet_traits<lane>::size;
  static constexpr int count = lanes / width;
  using indices = std::make_integer_sequence<int, count>;
  packet at[count];

  /// The elements in memory, for functions that are not written for registers.
  struct spilled {
    alignas(run_detail::alignment) lane at[lanes];
    operator const lane*() const { return at; }
  };
  EIGEN_ALWAYS_INLINE spilled elements() const {
    spilled s;
    store(s.at);
    return s;
  }
  EIGEN_ALWAYS_INLINE void store(lane* x) const {
    [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
      (Eigen::internal::pstoreu(x + I * width, at[I]), ...);
    }
    (indices{});
  }
  EIGEN_ALWAYS_INLINE static pack of(const lane* x) {
    return made([&](int i) __attribute__((always_inline)) {
      return Eigen::internal::ploadu<packet>(x + i * width);
    });
  }
  EIGEN_ALWAYS_INLINE static pack all(lane x) {
    return made([&](int)
                    __attribute__((always_inline)) { return Eigen::internal::pset1<packet>(x); });
  }
  template <class F>
  EIGEN_ALWAYS_INLINE static pack made(F f) {
    pack p;
    [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
      ((p.at[I] = f(I)), ...);
    }
    (indices{});
    return p;
  }
};

namespace functions {
/// Functions of lanes are not inlined, so that no compiler joins their last product to a sum.
template <class F, class T, int... I>
[[gnu::noinline]] void map(const void* const* in, void* out) {
  run_detail::map_block<F, T, I...>(lanes, in, out);
}
template <class T>
[[gnu::noinline]] void round(lane_of<T>* x) {
  const void* in[] = {x};
  run_detail::round_block<T, float>(lanes, in, x);
}
}  // namespace functions

/// A result in its element type: 16-bit floats are rounded.
template <class T>
EIGEN_ALWAYS_INLINE pack<T> rounded(const pack<T>& x) {
  if constexpr (is_rounded<T>) {
    auto elements = x.elements();
    functions::round<T>(elements.at);
    return pack<T>::of(elements);
  } else {
    return x;
  }
}

// ---- From memory and to it
// -----------------------------------------------------------------------

/// Elements i to i + 15.
template <class T>
EIGEN_ALWAYS_INLINE pack<T> load(const T* x, std::int64_t i) {
  if constexpr (is_rounded<T>) {
    alignas(run_detail::alignment) float wide[lanes];
    const void* in[] = {x + i};
    run_detail::convert_block<float, T>(lanes, in, wide);
    return pack<T>::of(wide);
  } else {
    return pack<T>::of(reinterpret_cast<const lane_of<T>*>(x + i));
  }
}
template <class T>
EIGEN_ALWAYS_INLINE void store(const pack<T>& x, T* to, std::int64_t i) {
  if constexpr (is_rounded<T>) {
    const auto wide = x.elements();
    const void* in[] = {wide.at};
    run_detail::convert_block<T, float>(lanes, in, to + i);
  } else if constexpr (in_packets<T>) {
    x.store(to + i);
  } else {
    std::copy_n(x.at, lanes, reinterpret_cast<lane_of<T>*>(to + i));
  }
}
/// One element, repeated.
template <class T>
EIGEN_ALWAYS_INLINE pack<T> splat(T x) {
  const auto lane = static_cast<lane_of<T>>(x);
  if constexpr (in_packets<T>) {
    return pack<T>::all(lane);
  } else {
    pack<T> p;
    std::fill_n(p.at, lanes, lane);
    return p;
  }
}
/// The element that a constant's attribute encodes.
template <class T>
EIGEN_ALWAYS_INLINE pack<T> splat_bits(std::int64_t bits) {
  return splat(run_detail::element_of_bits<T>(bits));
}
/// `count` elements, each `Inner` times and all of them again and again: elements i to i + 15.
template <std::int64_t Count, std::int64_t Inner, class T>
EIGEN_ALWAYS_INLINE pack<T> repeat(const T* x, std::int64_t i) {
  if constexpr (Inner == 1 && Count % lanes == 0) {
    return load(x, i % Count);
  } else if constexpr (Inner % lanes == 0) {
    return splat(x[i / Inner % Count]);
  } else {
    alignas(run_detail::alignment) T each[lanes];
    if constexpr (Inner == 1 && lanes % Count == 0) i = 0;
    for (std::int64_t k = 0; k < lanes; ++k) each[k] = x[(i + k) / Inner % Count];
    return load(each, 0);
  }
}

// ---- Operations
// ----------------------------------------------------------------------------------

/// An elementwise op by its class in run/kernels; `To`: the element type of the result.
template <class To, class F, class T, class... Rest>
EIGEN_ALWAYS_INLINE pack<To> map(const pack<T>& x, const Rest&... rest) {
  const auto elements = std::make_tuple(x.elements(), rest.elements()...);
  return std::apply(
      [](const auto&... each) {
        const void* in[] = {static_cast<const lane_of<T>*>(each)...};
        alignas(run_detail::alignment) lane_of<To> out[lanes];
        [&]<int... I>(std::integer_sequence<int, I...>) {
          if constexpr (std::is_same_v<T, bool> && requires { typename F::on_booleans; })
            functions::map<typename F::on_booleans, std::uint8_t, I...>(in, out);
          else
            functions::map<F, lane_of<T>, I...>(in, out);
        }
        (std::make_integer_sequence<int, 1 + sizeof...(Rest)>{});
        return rounded(pack<To>::of(out));
      },
      elements);
}
/// A function of packets, for each packet.
template <class F, class T, class... Rest>
EIGEN_ALWAYS_INLINE pack<T> in_registers(F f, const pack<T>& x, const Rest&... rest) {
  return rounded(pack<T>::made([&](int i) __attribute__((always_inline)) {
    return f(x.at[i], rest.at[i]...);
  }));
}

#define PARTITA_CODE_OPERATOR(symbol, packets, lanes)                                         \
  template <class T>                                                                          \
  EIGEN_ALWAYS_INLINE pack<T> operator symbol(const pack<T>& x, const pack<T>& y) {           \
    if constexpr (in_packets<T>)                                                              \
      return in_registers(                                                                    \
          [](auto a, auto b) __attribute__((always_inline)) { return packets(a, b); }, x, y); \
    else                                                                                      \
      return map<T, run_detail::lanes>(x, y);                                                 \
  }
/// A product that the compiler cannot fuse with a sum.
template <class Packet>
EIGEN_ALWAYS_INLINE Packet multiply_packets(const Packet& a, const Packet& b) {
  Packet product = Eigen::internal::pmul(a, b);
#if defined(EIGEN_VECTORIZE_FMA) || defined(EIGEN_VECTORIZE_NEON)
  EIGEN_OPTIMIZATION_BARRIER(product)
#endif
  return product;
}
PARTITA_CODE_OPERATOR(+, Eigen::internal::padd, add_lanes)
PARTITA_CODE_OPERATOR(-, Eigen::internal::psub, subtract_lanes)
PARTITA_CODE_OPERATOR(*, multiply_packets, multiply_lanes)
PARTITA_CODE_OPERATOR(/, Eigen::internal::pdiv, divide_lanes)
#undef PARTITA_CODE_OPERATOR

template <class T>
EIGEN_ALWAYS_INLINE pack<T> operator-(const pack<T>& x) {
  if constexpr (in_packets<T>)
    return in_registers(
        [](auto a) __attribute__((always_inline)) {
          using lane = lane_of<T>;
          return Eigen::internal::pxor(a, Eigen::internal::pset1<decltype(a)>(lane(-0.)));
        },
        x);
  else
    return map<T, run_detail::negate_lanes>(x);
}
// Functions of binary32 are computed in registers.
#define PARTITA_CODE_FUNCTION(name)                                                               \
  template <class T>                                                                              \
  EIGEN_ALWAYS_INLINE pack<T> name(const pack<T>& x) {                                            \
    if constexpr (std::is_same_v<lane_of<T>, float>)                                              \
      return in_registers(                                                                        \
          [](auto a) __attribute__((always_inline)) { return run_detail::name##_packet(a); }, x); \
    else                                                                                          \
      return map<T, run_detail::name##_lanes>(x);                                                 \
  }
PARTITA_CODE_FUNCTION(exp)
PARTITA_CODE_FUNCTION(logistic)
PARTITA_CODE_FUNCTION(tanh)
#undef PARTITA_CODE_FUNCTION

template <class To, class From>
EIGEN_ALWAYS_INLINE pack<To> convert(const pack<From>& x) {
  const auto& elements = x.elements();
  const void* in[] = {static_cast<const lane_of<From>*>(elements)};
  alignas(run_detail::alignment) lane_of<To> out[lanes];
  if constexpr (is_rounded<To>)
    run_detail::round_block<To, lane_of<From>>(lanes, in, out);
  else
    run_detail::convert_block<To, lane_of<From>>(lanes, in, out);
  return pack<To>::of(out);
}
template <class T>
EIGEN_ALWAYS_INLINE pack<T> select(const pack<bool>& which, const pack<T>& x, const pack<T>& y) {
  const auto &a = x.elements(), &b = y.elements();
  using lane = lane_of<T>;
  const lane *first = a, *second = b;
  alignas(run_detail::alignment) lane out[lanes];
  for (std::int64_t k = 0; k < lanes; ++k) out[k] = which.at[k] ? first[k] : second[k];
  return pack<T>::of(out);
}
template <class T>
pack<T> random_bits(const pack<T>& key, const pack<T>& counter) {
  pack<T> out;
  const void* in[] = {key.at, counter.at};
  run_detail::random_bits_block(lanes, in, out.at);
  return out;
}

}  // namespace partita::code
