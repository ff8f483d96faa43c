/// The classes that compute elementwise ops, by op.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include <partita/run/kernels/elementwise.hpp>
#include <partita/run/kernels/special.hpp>

namespace partita::run_detail {

/// `Links`: true if chains compute the op on floats (see chain.hpp).
template <class Op, class Lanes, bool Links = false>
struct elementwise_kernel {
  using lanes = Lanes;
  static constexpr std::uint64_t id = def<Op>.id;
  static constexpr block_function of_type(dtype t) {
    return map_function<Lanes, def<Op>.operand_count, Links>(t);
  }
};
/// The elementwise ops whose function depends on the type of the operands only. The class of an op
/// has its name and `_lanes` after it.
using elementwise_kernels = std::tuple<
    elementwise_kernel<op::add, add_lanes, true>,
    elementwise_kernel<op::subtract, subtract_lanes, true>,
    elementwise_kernel<op::multiply, multiply_lanes, true>,
    elementwise_kernel<op::divide, divide_lanes, true>,
    elementwise_kernel<op::remainder, remainder_lanes>,
    elementwise_kernel<op::maximum, maximum_lanes>, elementwise_kernel<op::minimum, minimum_lanes>,
    elementwise_kernel<op::power, power_lanes>, elementwise_kernel<op::atan2, atan2_lanes>,
    elementwise_kernel<op::clamp, clamp_lanes>, elementwise_kernel<op::negate, negate_lanes, true>,
    elementwise_kernel<op::abs, abs_lanes>, elementwise_kernel<op::sign, sign_lanes>,
    elementwise_kernel<op::floor, floor_lanes>, elementwise_kernel<op::ceil, ceil_lanes>,
    elementwise_kernel<op::round_nearest_even, round_nearest_even_lanes>,
    elementwise_kernel<op::round_nearest_away, round_nearest_away_lanes>,
    elementwise_kernel<op::exp, exp_lanes>, elementwise_kernel<op::expm1, expm1_lanes>,
    elementwise_kernel<op::log, log_lanes>, elementwise_kernel<op::log1p, log1p_lanes>,
    elementwise_kernel<op::logistic, logistic_lanes>, elementwise_kernel<op::tanh, tanh_lanes>,
    elementwise_kernel<op::erf, erf_lanes>, elementwise_kernel<op::erfc, erfc_lanes>,
    elementwise_kernel<op::erf_inv, erf_inv_lanes>, elementwise_kernel<op::lgamma, lgamma_lanes>,
    elementwise_kernel<op::digamma, digamma_lanes>, elementwise_kernel<op::sqrt, sqrt_lanes>,
    elementwise_kernel<op::rsqrt, rsqrt_lanes>, elementwise_kernel<op::cbrt, cbrt_lanes>,
    elementwise_kernel<op::sine, sine_lanes>, elementwise_kernel<op::cosine, cosine_lanes>,
    elementwise_kernel<op::tan, tan_lanes>, elementwise_kernel<op::is_finite, is_finite_lanes>,
    elementwise_kernel<op::logical_and, and_lanes>, elementwise_kernel<op::logical_or, or_lanes>,
    elementwise_kernel<op::logical_xor, xor_lanes>, elementwise_kernel<op::logical_not, not_lanes>,
    elementwise_kernel<op::popcnt, popcnt_lanes>,
    elementwise_kernel<op::count_leading_zeros, count_leading_zeros_lanes>,
    elementwise_kernel<op::shift_left, shift_left_lanes>,
    elementwise_kernel<op::shift_right_arithmetic, shift_right_arithmetic_lanes>,
    elementwise_kernel<op::shift_right_logical, shift_right_logical_lanes>>;

/// Returns the row of the op with this number (op_def::id), or the number of rows.
constexpr std::size_t elementwise_row(std::uint64_t id) {
  return []<class... Rows>(std::uint64_t wanted, std::type_identity<std::tuple<Rows...>>) {
    std::size_t row = 0;
    static_cast<void>(((Rows::id == wanted || (++row, false)) || ...));
    return row;
  }(id, std::type_identity<elementwise_kernels>{});
}

}  // namespace partita::run_detail
