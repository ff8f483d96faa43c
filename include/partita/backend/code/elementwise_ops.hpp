/// Which class of run/kernels computes an elementwise op, for templates.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include <partita/backend/code/lanes.hpp>
#include <partita/run/kernels/special.hpp>

namespace partita::backend_detail {

/// The C++ type of elements.
template <dtype T>
using cpp_type = std::tuple_element_t<
    static_cast<std::size_t>(T),
    std::tuple<float, double, bf16, f16, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
               std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>>;

/// `type`: the class that computes the op with this number (op_def::id); void if none does.
template <std::uint64_t Id>
struct lanes_for {
  using type = void;
};
#define PARTITA_LANES(op, name)                 \
  template <>                                   \
  struct lanes_for<ir_detail::number_of(#op)> { \
    using type = run_detail::name;              \
  };
PARTITA_LANES(remainder, remainder_lanes)
PARTITA_LANES(maximum, maximum_lanes)
PARTITA_LANES(minimum, minimum_lanes)
PARTITA_LANES(power, power_lanes)
PARTITA_LANES(atan2, atan2_lanes)
PARTITA_LANES(clamp, clamp_lanes)
PARTITA_LANES(abs, abs_lanes)
PARTITA_LANES(sign, sign_lanes)
PARTITA_LANES(floor, floor_lanes)
PARTITA_LANES(ceil, ceil_lanes)
PARTITA_LANES(round_nearest_even, round_nearest_even_lanes)
PARTITA_LANES(round_nearest_away, round_nearest_away_lanes)
PARTITA_LANES(expm1, expm1_lanes)
PARTITA_LANES(log, log_lanes)
PARTITA_LANES(log1p, log1p_lanes)
PARTITA_LANES(erf, erf_lanes)
PARTITA_LANES(erfc, erfc_lanes)
PARTITA_LANES(erf_inv, erf_inv_lanes)
PARTITA_LANES(lgamma, lgamma_lanes)
PARTITA_LANES(digamma, digamma_lanes)
PARTITA_LANES(sqrt, sqrt_lanes)
PARTITA_LANES(rsqrt, rsqrt_lanes)
PARTITA_LANES(cbrt, cbrt_lanes)
PARTITA_LANES(sine, sine_lanes)
PARTITA_LANES(cosine, cosine_lanes)
PARTITA_LANES(tan, tan_lanes)
PARTITA_LANES(is_finite, is_finite_lanes)
PARTITA_LANES(logical_and, and_lanes)
PARTITA_LANES(logical_or, or_lanes)
PARTITA_LANES(logical_xor, xor_lanes)
PARTITA_LANES(logical_not, not_lanes)
PARTITA_LANES(popcnt, popcnt_lanes)
PARTITA_LANES(count_leading_zeros, count_leading_zeros_lanes)
PARTITA_LANES(shift_left, shift_left_lanes)
PARTITA_LANES(shift_right_arithmetic, shift_right_arithmetic_lanes)
PARTITA_LANES(shift_right_logical, shift_right_logical_lanes)
#undef PARTITA_LANES

/// The comparison of a direction.
template <ops::direction D>
using comparison =
    std::tuple_element_t<static_cast<std::size_t>(D),
                         std::tuple<std::equal_to<>, std::not_equal_to<>, std::less<>,
                                    std::less_equal<>, std::greater<>, std::greater_equal<>>>;

/// An elementwise op on lanes. `First`: its first attribute, if it has one.
template <std::uint64_t Id, class To, std::int64_t First, class X, class... Rest>
EIGEN_ALWAYS_INLINE code::pack<To> apply_op_on_lanes(const X& x, const Rest&... rest) {
  constexpr auto is = [](std::string_view name) { return Id == ir_detail::number_of(name); };
  if constexpr (is("add"))
    return (x + ... + rest);
  else if constexpr (is("subtract"))
    return (x - ... - rest);
  else if constexpr (is("multiply"))
    return (x * ... * rest);
  else if constexpr (is("divide"))
    return (x / ... / rest);
  else if constexpr (is("negate"))
    return -x;
  else if constexpr (is("exp"))
    return code::exp(x);
  else if constexpr (is("logistic"))
    return code::logistic(x);
  else if constexpr (is("tanh"))
    return code::tanh(x);
  else if constexpr (is("convert"))
    return code::convert<To>(x);
  else if constexpr (is("select"))
    return code::select(x, rest...);
  else if constexpr (is("random_bits"))
    return code::random_bits(x, rest...);
  else if constexpr (is("compare"))
    return code::map<bool,
                     run_detail::compare_lanes<comparison<static_cast<ops::direction>(First)>>>(
        x, rest...);
  else
    return code::map<To, typename lanes_for<Id>::type>(x, rest...);
}

}  // namespace partita::backend_detail
