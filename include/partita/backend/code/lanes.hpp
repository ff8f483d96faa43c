/// The elements of a loop, sixteen at a time: what files of device code and `compiled` compute
/// with.
///
/// Every operation rounds its result to the element type and no product is fused with the sum that
/// follows, whatever the compiler's flags, so that the bits are those of the kernels.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <partita/run/kernels/chain.hpp>
#include <partita/run/kernels/convert.hpp>
#include <partita/run/kernels/elementwise.hpp>
#include <partita/run/kernels/random.hpp>

namespace partita::code {

using run_detail::lanes, run_detail::computed_type;

namespace kernels = run_detail;  ///< as files of device code name them

template <class T>
inline constexpr bool in_packets = std::is_floating_point_v<computed_type<T>>;
/// True for the 16-bit floats.
template <class T>
inline constexpr bool is_rounded = in_packets<T> && !std::is_same_v<T, computed_type<T>>;

/// Sixteen elements of type T in registers, in the type in which they are computed.
template <class T>
struct pack {
  using lane = computed_type<T>;
  using packet = typename Eigen::internal::packet_traits<lane>::type;
  static constexpr int width = Eigen::internal::packet_traits<lane>::size;
  using indices = std::make_integer_sequence<int, lanes / width>;
  packet at[lanes / width];

  /// The elements in memory.
  struct block {
    alignas(run_detail::alignment) lane at[lanes];
  };
  EIGEN_ALWAYS_INLINE block elements() const {
    block b;
    store(b.at);
    return b;
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

/// A function of blocks, for one block.
template <class To, class... X>
EIGEN_ALWAYS_INLINE pack<To> of_block(run_detail::block_function f, const X&... x) {
  return [f](const auto&... each) __attribute__((always_inline)) {
    const void* in[] = {each.at...};
    typename pack<To>::block out;
    f(lanes, in, out.at);
    return pack<To>::of(out.at);
  }
  (x.elements()...);
}
/// They are not inlined, so that no compiler joins their last product to a sum.
template <class F, class T, int... I>
[[gnu::noinline]] void map_elements(std::int64_t, const void* const* in, void* out) {
  run_detail::map_block<F, T, I...>(lanes, in, out);
}
template <class T>
[[gnu::noinline]] void round_elements(std::int64_t, const void* const* in, void* out) {
  run_detail::round_block<T, float>(lanes, in, out);
}
/// A result in its element type: 16-bit floats are rounded.
template <class T>
EIGEN_ALWAYS_INLINE pack<T> rounded(const pack<T>& x) {
  if constexpr (is_rounded<T>)
    return of_block<T>(&round_elements<T>, x);
  else
    return x;
}

// ---- Memory
// --------------------------------------------------------------------------------------

/// Elements i to i + 15.
template <class T>
EIGEN_ALWAYS_INLINE pack<T> load(const T* x, std::int64_t i) {
  if constexpr (is_rounded<T>) {
    typename pack<T>::block wide;
    const void* in[] = {x + i};
    run_detail::convert_block<float, T>(lanes, in, wide.at);
    return pack<T>::of(wide.at);
  } else {
    return pack<T>::of(reinterpret_cast<const computed_type<T>*>(x + i));
  }
}
template <class T>
EIGEN_ALWAYS_INLINE void store(const pack<T>& x, T* to, std::int64_t i) {
  if constexpr (is_rounded<T>) {
    const auto wide = x.elements();
    const void* in[] = {wide.at};
    run_detail::convert_block<T, float>(lanes, in, to + i);
  } else {
    x.store(reinterpret_cast<computed_type<T>*>(to + i));
  }
}
/// One element, repeated.
template <class T>
EIGEN_ALWAYS_INLINE pack<T> splat(T x) {
  using packet = typename pack<T>::packet;
  const auto all = Eigen::internal::pset1<packet>(static_cast<computed_type<T>>(x));
  return pack<T>::made([&](int) __attribute__((always_inline)) { return all; });
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

/// The op that a class of run/kernels computes, on packets; void for ops that packets do not
/// compute. A product passes a barrier: no compiler fuses it with a sum.
template <class F, class Packet, class... Rest>
EIGEN_ALWAYS_INLINE auto map_packet(Packet x, const Rest&... y) {
  using namespace Eigen::internal;
  using namespace run_detail;
  using lane = typename unpacket_traits<Packet>::type;
  if constexpr (std::is_same_v<F, add_lanes>) {
    return padd(x, y...);
  } else if constexpr (std::is_same_v<F, subtract_lanes>) {
    return psub(x, y...);
  } else if constexpr (std::is_same_v<F, multiply_lanes>) {
    x = pmul(x, y...);
#if defined(EIGEN_VECTORIZE_FMA) || defined(EIGEN_VECTORIZE_NEON)
    EIGEN_OPTIMIZATION_BARRIER(x)
#endif
    return x;
  } else if constexpr (std::is_same_v<F, divide_lanes>) {
    return pdiv(x, y...);
  } else if constexpr (std::is_same_v<F, negate_lanes>) {
    return pxor(x, pset1<Packet>(lane(-0.)));
  } else if constexpr (std::is_same_v<lane, float> && std::is_same_v<F, exp_lanes>) {
    return exp_packet(x);
  } else if constexpr (std::is_same_v<lane, float> && std::is_same_v<F, logistic_lanes>) {
    return logistic_packet(x);
  } else if constexpr (std::is_same_v<lane, float> && std::is_same_v<F, tanh_lanes>) {
    return tanh_packet(x);
  }
}
template <class F, class T, class... Rest>
inline constexpr bool computes_packets = [] {
  if constexpr (in_packets<T>)
    return !std::is_void_v<decltype(map_packet<F>(pack<T>().at[0], Rest().at[0]...))>;
  else
    return false;
}();
/// An elementwise op by its class in run/kernels; `To`: the element type of the result, if it is
/// another than that of the operands.
template <class F, class To = void, class T, class... Rest>
EIGEN_ALWAYS_INLINE auto map(const pack<T>& x, const Rest&... rest) {
  using to = std::conditional_t<std::is_void_v<To>, T, To>;
  if constexpr (computes_packets<F, T, Rest...>)
    return rounded(pack<T>::made([&](int i) __attribute__((always_inline)) {
      return map_packet<F>(x.at[i], rest.at[i]...);
    }));
  else
    return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
      if constexpr (std::is_same_v<T, bool> && requires { typename F::on_booleans; })
        return of_block<to>(&map_elements<typename F::on_booleans, std::uint8_t, I...>, x, rest...);
      else
        return rounded(of_block<to>(&map_elements<F, computed_type<T>, I...>, x, rest...));
    }
  (std::make_integer_sequence<int, 1 + sizeof...(Rest)>{});
}
template <class T>
EIGEN_ALWAYS_INLINE pack<T> operator+(const pack<T>& x, const pack<T>& y) {
  return map<run_detail::add_lanes>(x, y);
}
template <class T>
EIGEN_ALWAYS_INLINE pack<T> operator-(const pack<T>& x, const pack<T>& y) {
  return map<run_detail::subtract_lanes>(x, y);
}
template <class T>
EIGEN_ALWAYS_INLINE pack<T> operator*(const pack<T>& x, const pack<T>& y) {
  return map<run_detail::multiply_lanes>(x, y);
}
template <class T>
EIGEN_ALWAYS_INLINE pack<T> operator/(const pack<T>& x, const pack<T>& y) {
  return map<run_detail::divide_lanes>(x, y);
}

template <class To, class From>
EIGEN_ALWAYS_INLINE pack<To> convert(const pack<From>& x) {
  using lane = computed_type<From>;
  if constexpr (is_rounded<To>)
    return of_block<To>(&run_detail::round_block<To, lane>, x);
  else
    return of_block<To>(&run_detail::convert_block<To, lane>, x);
}
template <class T>
EIGEN_ALWAYS_INLINE pack<T> select(const pack<bool>& which, const pack<T>& x, const pack<T>& y) {
  constexpr run_detail::block_function f = run_detail::select_function(dtype_of<T>);
  return of_block<T>(f, which, x, y);
}
template <class T>
EIGEN_ALWAYS_INLINE pack<T> random_bits(const pack<T>& key, const pack<T>& counter) {
  return of_block<T>(&run_detail::random_bits_block, key, counter);
}

}  // namespace partita::code
