/// Chains of elementwise arithmetic in vector registers. Each link transforms the result of the one
/// before it; values that other ops need are stored on the way. At the end, a chain may reduce its
/// rows.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include <Eigen/Core>

#include <partita/run/array.hpp>
#include <partita/run/kernels/combine.hpp>
#include <partita/run/kernels/link.hpp>

namespace partita::run_detail {

/// exp(x) in binary32: 2^m times a polynomial in x - m log(2).
///
/// Source    the reduction and the polynomial of Cephes' expf; m may be down to -150 and the factor
///           is applied in two halves, so that subnormal results are rounded once
template <class Packet>
EIGEN_ALWAYS_INLINE Packet exp_packet(const Packet& x) {
  using namespace Eigen::internal;
  if constexpr (std::is_arithmetic_v<Packet>) {
    return std::exp(x);
  } else {
    using integers = typename unpacket_traits<Packet>::integer_packet;
    const auto all = [](float v) { return pset1<Packet>(v); };
    const Packet in_range = pmin(pmax(x, all(-105.f)), all(89.f));  // NaN stays
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    const Packet shift = all(12582912.f);
    const Packet shifted = pmadd(in_range, all(1.44269504088896341f), shift);
    const Packet m = psub(shifted, shift);
    const integers power = psub(preinterpret<integers>(shifted), preinterpret<integers>(shift));
    Packet r = pmadd(m, all(-0.693359375f), in_range);
    r = pmadd(m, all(2.12194440e-4f), r);
    Packet p = pmadd(r, all(1.9875691500E-4f), all(1.3981999507E-3f));
    p = pmadd(p, r, all(8.3334519073E-3f));
    p = pmadd(p, r, all(4.1665795894E-2f));
    p = pmadd(p, r, all(1.6666665459E-1f));
    p = pmadd(p, r, all(5.0000001201E-1f));
    p = padd(pmadd(p, pmul(r, r), r), all(1.f));
    const integers half = parithmetic_shift_right<1>(power);
    const auto power_of_two = [](const integers& e) {
      return preinterpret<Packet>(plogical_shift_left<23>(padd(e, pset1<integers>(127))));
    };
    return pmul(pmul(p, power_of_two(half)), power_of_two(psub(power, half)));
  }
}
/// 1 / (1 + exp(-x)), from the side where exp does not overflow.
template <class Packet>
EIGEN_ALWAYS_INLINE Packet logistic_packet(const Packet& x) {
  using namespace Eigen::internal;
  const Packet one = pset1<Packet>(1.f), e = exp_packet(pnegate(pabs(x)));
  return pdiv(pselect(pcmp_lt(x, pset1<Packet>(0.f)), e, one), padd(one, e));
}
/// A quotient of polynomials, x p(x^2) / q(x^2), up to where it becomes 1.
///
/// Source    the approximation of Eigen and XLA for binary32, divided by the constant term of q
template <class Packet>
EIGEN_ALWAYS_INLINE Packet tanh_packet(const Packet& any) {
  using namespace Eigen::internal;
  const auto all = [](double v) { return pset1<Packet>(static_cast<float>(v)); };
  const auto polynomial = [&](const Packet& s, auto first, auto... rest) {
    Packet p = all(first);
    ((p = pmadd(s, p, all(rest))), ...);
    return p;
  };
  // There the quotient is 1 with and without fused additions, and further in it is never above.
  constexpr double last = 8.05126095;
  const Packet x = pmin(pmax(any, all(-last)), all(last));  // NaN stays
  const Packet s = pmul(x, x);
  const Packet p = polynomial(s, -5.64167624e-14, 4.08741721e-11, -1.75837892e-08, 1.04674992e-05,
                              0.00303609832, 0.130225534, 0.999999872);
  const Packet q = polynomial(s, 0.000244866093, 0.024222764, 0.463558385, 1);
  return pdiv(pmul(x, p), q);
}

/// True if a division is slower than several multiplications with fused additions.
template <class Packet>
inline constexpr bool divides_slowly =
#if defined(EIGEN_VECTORIZE_FMA)
    sizeof(Packet) == 64;
#else
    false;
#endif

/// Computes x / y with one y for all elements, correctly rounded: the quotient by the reciprocal,
/// then its exact remainder. Numbers far from 1 (and 0, for its sign) are divided directly.
///
/// Source    P. Markstein, Computation of elementary functions on the IBM RISC System/6000
///           processor, IBM Journal of Research and Development 34 (1990); the exception
///           there, a divisor with all bits set, is divided as usual
template <class T, class Packet, int... I>
EIGEN_ALWAYS_INLINE void divide_tile(Packet* x, T y, std::integer_sequence<int, I...>) {
  using namespace Eigen::internal;
  constexpr T least = T(0x1p-60), most = T(0x1p60);
  const Packet divisor = pset1<Packet>(y);
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr bits all_set = (bits(1) << (std::numeric_limits<T>::digits - 1)) - 1;
  const bool all_bits_set = (std::bit_cast<bits>(y) & all_set) == all_set;
  if (std::abs(y) >= least && std::abs(y) <= most && !all_bits_set) {
    Packet low = pset1<Packet>(most), high = pset1<Packet>(least);
    ((low = pmin(low, pabs(x[I])), high = pmax(high, pabs(x[I]))), ...);
    const Packet outside =
        por(pcmp_lt(low, pset1<Packet>(least)), pcmp_lt(pset1<Packet>(most), high));
    if (!predux_any(outside)) {
      const Packet reciprocal = pset1<Packet>(T(1) / y), negated = pnegate(divisor);
      const auto quotient = [&](const Packet& v) __attribute__((always_inline)) {
        const Packet q = pmul(v, reciprocal);
        return pmadd(pmadd(negated, q, v), reciprocal, q);
      };
      ((x[I] = quotient(x[I])), ...);
      return;
    }
  }
  ((x[I] = pdiv(x[I], divisor)), ...);
}

/// Runs the links on a tile of packets at element i of all, within a row; leaves the last running
/// value in x. It is inlined, so that the tile stays in registers.
template <class T, class Packet, int... I>
EIGEN_ALWAYS_INLINE void run_tile(std::int64_t row, std::int64_t i, const chain_link* links,
                                  std::size_t count, Packet* x,
                                  std::integer_sequence<int, I...> packets) {
  namespace inner = Eigen::internal;
  constexpr std::int64_t width = inner::packet_traits<T>::size;
  ((x[I] = inner::pset1<Packet>(T(0))), ...);  // the first link loads; compilers do not know
  for (const chain_link *l = links, *end = links + count; l != end; ++l) {
    T* const y = static_cast<T*>(l->operand) + i * l->by_element + row * l->by_row;
    const bool one = l->by_element == 0;
    const auto combine = [&](auto f) __attribute__((always_inline)) {
      if (one) {
        const Packet all = inner::pset1<Packet>(*y);
        ((x[I] = f(x[I], all)), ...);
      } else {
        ((x[I] = f(x[I], inner::ploadu<Packet>(y + I * width))), ...);
      }
    };
    const auto map = [&](auto f) __attribute__((always_inline)) {
      if constexpr (std::is_same_v<T, float>) ((x[I] = f(x[I])), ...);
    };
    switch (l->what) {
      case link::none:
        break;
      case link::load:
        combine([](Packet, Packet b) { return b; });
        break;
      case link::store:
        (inner::pstoreu(y + I * width, x[I]), ...);
        break;
      case link::add:
        combine([](Packet a, Packet b) { return inner::padd(a, b); });
        break;
      case link::subtract:
        combine([](Packet a, Packet b) { return inner::psub(a, b); });
        break;
      case link::subtract_from:
        combine([](Packet a, Packet b) { return inner::psub(b, a); });
        break;
      case link::multiply:
        combine([](Packet a, Packet b) { return inner::pmul(a, b); });
        break;
      case link::divide:
        if (divides_slowly<Packet> && one)
          divide_tile(x, *y, packets);
        else
          combine([](Packet a, Packet b) { return inner::pdiv(a, b); });
        break;
      case link::divide_into:
        combine([](Packet a, Packet b) { return inner::pdiv(b, a); });
        break;
      case link::negate:
        ((x[I] = inner::pxor(x[I], inner::pset1<Packet>(T(-0.)))), ...);
        break;
      case link::exp:
        map([](auto a) __attribute__((always_inline)) { return exp_packet(a); });
        break;
      case link::logistic:
        map([](auto a) __attribute__((always_inline)) { return logistic_packet(a); });
        break;
      case link::tanh:
        map([](auto a) __attribute__((always_inline)) { return tanh_packet(a); });
        break;
    }
  }
}

/// The number of packets in a tile: as many as leave registers for the functions, and at least
/// `lanes` elements.
template <class T>
struct tile {
  using packet = typename Eigen::internal::packet_traits<T>::type;
  static constexpr int width = Eigen::internal::packet_traits<T>::size;
  static constexpr int least = lanes / width;
  static constexpr int packets = std::max(int{EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS} / 4, least);
  static constexpr int elements = packets * width;

  static constexpr int some = std::max(packets / 2, least);  // where a row ends
  using large = std::make_integer_sequence<int, packets>;
  using medium = std::make_integer_sequence<int, some>;
  using small = std::make_integer_sequence<int, least>;
};

/// Runs a chain. Rows have at least `lanes` elements, or there is a single row with a multiple of
/// `lanes`.
template <class T>
void run_chain_of(std::int64_t rows, std::int64_t row, const chain_link* links, std::size_t count) {
  using t = tile<T>;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t i = r * row;
    const std::int64_t end = i + row;
    for (; i + t::elements <= end; i += t::elements) {
      typename t::packet x[t::packets];
      run_tile<T>(r, i, links, count, x, typename t::large{});
    }
    if constexpr (t::some > t::least)
      for (; i + t::some * t::width <= end; i += t::some * t::width) {
        typename t::packet x[t::some];
        run_tile<T>(r, i, links, count, x, typename t::medium{});
      }
    for (; i < end; i += lanes) {
      typename t::packet x[t::least];
      run_tile<T>(r, std::min(i, end - lanes), links, count, x, typename t::small{});
    }
  }
}

/// Combines packets. The result of a maximum or minimum is unspecified if an element is NaN, and so
/// is its sign if it is zero.
template <combiner C, class Packet>
EIGEN_ALWAYS_INLINE Packet combine_packets(const Packet& a, const Packet& b) {
  using namespace Eigen::internal;
  if constexpr (C == combiner::max)
    return pmax(a, b);
  else if constexpr (C == combiner::min)
    return pmin(a, b);
  else if constexpr (C == combiner::multiply)
    return pmul(a, b);
  else
    return padd(a, b);
}
/// Combines the elements of a packet.
template <combiner C, class Packet>
EIGEN_ALWAYS_INLINE auto combine_elements(const Packet& x) {
  using namespace Eigen::internal;
  if constexpr (C == combiner::max)
    return predux_max(x);
  else if constexpr (C == combiner::min)
    return predux_min(x);
  else if constexpr (C == combiner::multiply)
    return predux_mul(x);
  else
    return predux(x);
}

/// Reduces the rest of a row from element i on, less than a tile: combined by lanes.
template <class f, class T>
EIGEN_DONT_INLINE void reduce_rest(std::int64_t row, std::int64_t i, std::int64_t end,
                                   const chain_link* links, std::size_t count, T* combined) {
  using t = tile<T>;
  std::fill_n(combined, lanes, f::template identity<T>());
  for (std::int64_t next = i; i < end; i = next) {
    next = std::min(end, i + lanes);
    // The last lanes may begin before i, so that no element after the row is read.
    const std::int64_t first = std::max<std::int64_t>(0, next - lanes);
    typename t::packet x[t::least];
    run_tile<T>(row, first, links, count, x, typename t::small{});
    alignas(alignment) T made[lanes];
    for (int k = 0; k < t::least; ++k) Eigen::internal::pstore(made + k * t::width, x[k]);
    for (std::int64_t j = i; j < next; ++j)
      combined[j - i] = f::one(combined[j - i], made[j - first]);
  }
}
/// Reduces the elements [begin, end) of a row that a chain computes, by tiles of packets. The
/// packets stay in registers, because constants index them.
template <class f, class T, int... I>
T reduce_tiles(std::int64_t row, std::int64_t begin, std::int64_t end, const chain_link* links,
               std::size_t count, std::integer_sequence<int, I...> packets) {
  using namespace Eigen::internal;
  using t = tile<T>;
  using packet = typename t::packet;
  constexpr int width = t::width, tiles = sizeof...(I);
  // A maximum is accompanied by a sum, which is NaN if an element is, and by the "and" of the
  // elements, whose sign is that of a zero maximum: no element is positive, so any without a sign
  // is +0. A minimum is accompanied by their "or".
  constexpr bool extreme = f::what == combiner::max || f::what == combiner::min;
  packet total[] = {(static_cast<void>(I), pset1<packet>(f::template identity<T>()))...};
  packet sum[] = {(static_cast<void>(I), pset1<packet>(T(0)))...};
  packet sign[] = {(static_cast<void>(I), pset1<packet>(f::template identity<T>()))...};
  const auto join = [](const packet& a, const packet& b) __attribute__((always_inline)) {
    if constexpr (f::what == combiner::max)
      return pand(a, b);
    else
      return por(a, b);
  };
  const auto take = [&]<int... K>(std::integer_sequence<int, K...>, const auto& x) {
    ((total[K] = combine_packets<f::what>(total[K], x(K))), ...);
    if constexpr (extreme) {
      ((sum[K] = padd(sum[K], x(K))), ...);
      ((sign[K] = join(sign[K], x(K))), ...);
    }
  };
  std::int64_t i = begin;
  if (count == 1 && links->by_element == 1) {
    const T* x = static_cast<const T*>(links->operand) + row * links->by_row;
    for (; i + tiles * width <= end; i += tiles * width)
      take(packets, [&](int k) { return ploadu<packet>(x + i + k * width); });
  }
  for (; i + tiles * width <= end; i += tiles * width) {
    packet x[tiles];
    run_tile<T>(row, i, links, count, x, packets);
    take(packets, [&](int k) { return x[k]; });
  }
  alignas(alignment) T rest[lanes];
  if (i < end) {
    reduce_rest<f>(row, i, end, links, count, rest);
    take(typename t::small{}, [&](int k) { return pload<packet>(rest + k * width); });
  }
  const auto halve = [&]<int... K>(std::integer_sequence<int, K...>) {
    constexpr int half = sizeof...(K);
    if constexpr (tiles >= 2 * half) {
      ((total[K] = combine_packets<f::what>(total[K], total[K + half])), ...);
      ((sum[K] = padd(sum[K], sum[K + half])), ...);
      ((sign[K] = join(sign[K], sign[K + half])), ...);
    }
  };
  static_assert(tiles <= 16);
  halve(std::make_integer_sequence<int, 8>{});
  halve(std::make_integer_sequence<int, 4>{});
  halve(std::make_integer_sequence<int, 2>{});
  halve(std::make_integer_sequence<int, 1>{});
  if (extreme && std::isnan(predux(sum[0]))) {
    reduce_rest<f>(row, begin, end, links, count, rest);
    return std::accumulate(rest + 1, rest + lanes, rest[0], f::template one<T>);
  }
  const T result = combine_elements<f::what>(total[0]);
  if (!extreme || result != T(0)) return result;
  pstore(rest, sign[0]);
  bool negative = f::what == combiner::max;
  for (int k = 0; k < width; ++k)
    negative = f::what == combiner::max ? negative && std::signbit(rest[k])
                                        : negative || std::signbit(rest[k]);
  return negative ? T(-0.) : T(0.);
}
/// Reduces a row in chunks, whose results are combined in `wider<T>`. The order depends on the
/// length only.
template <class f, class T>
T reduce_chain_row(std::int64_t row, std::int64_t n, const chain_link* links, std::size_t count) {
  using t = tile<T>;
  constexpr std::int64_t chunk = 64 * t::elements;
  const std::int64_t begin = row * n;
  const auto part = [&](std::int64_t from, std::int64_t to, auto packets) {
    return reduce_tiles<f, T>(row, begin + from, begin + to, links, count, packets);
  };
  if (n < 2 * t::elements) return part(0, n, typename t::small{});
  if (n <= chunk) return part(0, n, typename t::large{});
  wider<T> total = f::template identity<wider<T>>();
  for (std::int64_t i = 0; i < n; i += chunk)
    total = f::one(total, wider<T>(part(i, std::min(n, i + chunk), typename t::large{})));
  return static_cast<T>(total);
}

template <class T>
void reduce_chain_of(std::int64_t rows, std::int64_t row, const chain_link* links,
                     std::size_t count, combiner c, T* out) {
  with_combiner<T>(c, [&](auto f) {
    for (std::int64_t i = 0; i < rows; ++i)
      out[i] = reduce_chain_row<decltype(f), T>(i, row, links, count);
  });
}

}  // namespace partita::run_detail
