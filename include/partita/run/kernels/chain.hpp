/// Chains of arithmetic on elements that stay in vector registers: each link changes what the one
/// before it made, and only the last result is written.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <Eigen/Core>

#include <partita/run/array.hpp>
#include <partita/run/kernels/link.hpp>

namespace partita::detail {

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
    const Packet in_range = pmin(pmax(x, all(-105.f)), all(89.f));
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
    const Packet y = pmul(pmul(p, power_of_two(half)), power_of_two(psub(power, half)));
    return pselect(pcmp_eq(x, x), y, x);
  }
}
/// 1 / (1 + exp(-x)), from the side where exp does not overflow.
template <class Packet>
EIGEN_ALWAYS_INLINE Packet logistic_packet(const Packet& x) {
  using namespace Eigen::internal;
  const Packet one = pset1<Packet>(1.f), e = exp_packet(pnegate(pabs(x)));
  return pdiv(pselect(pcmp_lt(x, pset1<Packet>(0.f)), e, one), padd(one, e));
}
/// A quotient of polynomials, x p(x^2) / q(x^2), up to 8; then 1.
///
/// Source    the approximation of Eigen and XLA for binary32, divided by the constant term of q
template <class Packet>
EIGEN_ALWAYS_INLINE Packet tanh_packet(const Packet& x) {
  using namespace Eigen::internal;
  const auto all = [](double v) { return pset1<Packet>(static_cast<float>(v)); };
  const auto polynomial = [&](const Packet& s, auto first, auto... rest) {
    Packet p = all(first);
    ((p = pmadd(s, p, all(rest))), ...);
    return p;
  };
  const Packet s = pmul(x, x);
  const Packet p = polynomial(s, -5.64167624e-14, 4.08741721e-11, -1.75837892e-08, 1.04674992e-05,
                              0.00303609832, 0.130225534, 0.999999872);
  const Packet q = polynomial(s, 0.000244866093, 0.024222764, 0.463558385, 1);
  const Packet one = por(pand(x, all(-0.)), all(1));
  return pselect(pcmp_lt(all(8), pabs(x)), one, pdiv(pmul(x, p), q));
}

/// A tile of packets at element i. (Inlined, so that they stay in registers.)
template <class T, int... I>
EIGEN_ALWAYS_INLINE void run_tile(std::int64_t i, chain_operand first, const chain_link* links,
                                  std::size_t count, T* out, std::integer_sequence<int, I...>) {
  namespace inner = Eigen::internal;
  using packet = typename inner::packet_traits<T>::type;
  constexpr std::int64_t width = inner::packet_traits<T>::size;
  const auto load = [](const T* x) { return inner::ploadu<packet>(x); };
  const auto address = [i](const chain_operand& o, std::int64_t k) {
    return static_cast<const T*>(o.data) + (o.splat ? 0 : i + k * width);
  };
  packet x[] = {load(address(first, I))...};
  for (const chain_link *l = links, *end = links + count; l != end; ++l) {
    const auto combine = [&](auto f) __attribute__((always_inline)) {
      if (l->operand.splat) {
        const packet y = load(static_cast<const T*>(l->operand.data));
        ((x[I] = f(x[I], y)), ...);
      } else {
        const T* y = static_cast<const T*>(l->operand.data) + i;
        ((x[I] = f(x[I], load(y + I * width))), ...);
      }
    };
    const auto map = [&](auto f) __attribute__((always_inline)) {
      if constexpr (std::is_same_v<T, float>) ((x[I] = f(x[I])), ...);
    };
    switch (l->what) {
      case link::none:
        break;
      case link::add:
        combine([](packet a, packet b) { return inner::padd(a, b); });
        break;
      case link::subtract:
        combine([](packet a, packet b) { return inner::psub(a, b); });
        break;
      case link::subtract_from:
        combine([](packet a, packet b) { return inner::psub(b, a); });
        break;
      case link::multiply:
        combine([](packet a, packet b) { return inner::pmul(a, b); });
        break;
      case link::divide:
        combine([](packet a, packet b) { return inner::pdiv(a, b); });
        break;
      case link::divide_into:
        combine([](packet a, packet b) { return inner::pdiv(b, a); });
        break;
      case link::negate:
        ((x[I] = inner::pxor(x[I], inner::pset1<packet>(T(-0.)))), ...);
        break;
      case link::exp:
        map([](auto a) { return exp_packet(a); });
        break;
      case link::logistic:
        map([](auto a) { return logistic_packet(a); });
        break;
      case link::tanh:
        map([](auto a) { return tanh_packet(a); });
        break;
    }
  }
  (inner::pstoreu(out + i + I * width, x[I]), ...);
}

template <class T>
void run_chain_of(std::int64_t n, chain_operand first, const chain_link* links, std::size_t count,
                  void* out) {
  constexpr int width = Eigen::internal::packet_traits<T>::size;
  // As many as leave registers for the functions; a tile of `lanes` elements at least.
  constexpr int most = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS / 4, least = lanes / width;
  constexpr int packets = most > least ? most : least, step = packets * width;
  auto* to = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + step <= n; i += step)
    run_tile(i, first, links, count, to, std::make_integer_sequence<int, packets>{});
  for (; i < n; i += lanes)
    run_tile(i, first, links, count, to, std::make_integer_sequence<int, least>{});
}

}  // namespace partita::detail
