/// The table of kernels by op.
#pragma once

#include <span>

#include <partita/run/kernels/chain.hpp>
#include <partita/run/kernels/convolution.hpp>
#include <partita/run/kernels/cumsum.hpp>
#include <partita/run/kernels/dot_general.hpp>
#include <partita/run/kernels/fold.hpp>
#include <partita/run/kernels/gather.hpp>
#include <partita/run/kernels/library.hpp>
#include <partita/run/kernels/linalg.hpp>
#include <partita/run/kernels/movement.hpp>
#include <partita/run/kernels/random.hpp>
#include <partita/run/kernels/reduce.hpp>
#include <partita/run/kernels/reduce_precision.hpp>
#include <partita/run/kernels/sort.hpp>
#include <partita/run/kernels/special.hpp>
#include <partita/run/kernels/window.hpp>

namespace partita::run_detail {

/// Kernels of the ops that are neither block functions (see find_block) nor collectives, and that
/// do more than pass on their operands.
inline constexpr kernel_entry kernel_table[] = {
    {&def<op::constant>, &constant_kernel},
    {&def<op::literal>, &literal_kernel},
    {&def<op::iota>, &iota_kernel},
    {&def<op::bitcast_convert>, &bitcast_convert_kernel},
    {&def<op::reduce_precision>, &reduce_precision_kernel},
    {&def<op::broadcast_in_dim>, &broadcast_kernel},
    {&def<op::reduce>, &reduce_kernel},
    {&def<op::reduce_window>, &reduce_window_kernel},
    {&def<op::select_and_scatter>, &select_and_scatter_kernel},
    {&def<op::select_and_gather>, &select_and_gather_kernel},
    {&def<op::cumsum>, &cumsum_kernel},
    {&def<op::fold>, &fold_kernel},
    {&def<op::transpose>, &transpose_kernel},
    {&def<op::dot_general>, &dot_general_kernel, &plan_dot_general},
    {&def<op::convolution>, &convolution_kernel},
    {&def<op::gather>, &gather_kernel},
    {&def<op::scatter>, &scatter_kernel},
    {&def<op::concatenate>, &concatenate_kernel},
    {&def<op::slice>, &slice_kernel},
    {&def<op::reverse>, &reverse_kernel},
    {&def<op::roll>, &roll_kernel},
    {&def<op::pad>, &pad_kernel},
    {&def<op::dynamic_slice>, &dynamic_slice_kernel},
    {&def<op::dynamic_update_slice>, &dynamic_update_slice_kernel},
    {&def<op::sort>, &sort_kernel},
    {&def<op::top_k>, &top_k_kernel},
    {&def<op::cholesky>, &cholesky_kernel},
    {&def<op::triangular_solve>, &triangular_solve_kernel},
};

struct block_entry {
  const op_def* op;
  block_function (*of_type)(dtype);
};
/// The elementwise ops whose function depends on the type of the operands only.
inline constexpr block_entry block_table[] = {
    {&def<op::add>, &map_function<add_lanes, 2, true>},
    {&def<op::subtract>, &map_function<subtract_lanes, 2, true>},
    {&def<op::multiply>, &map_function<multiply_lanes, 2, true>},
    {&def<op::divide>, &map_function<divide_lanes, 2, true>},
    {&def<op::remainder>, &map_function<remainder_lanes, 2>},
    {&def<op::maximum>, &map_function<maximum_lanes, 2>},
    {&def<op::minimum>, &map_function<minimum_lanes, 2>},
    {&def<op::power>, &map_function<power_lanes, 2>},
    {&def<op::atan2>, &map_function<atan2_lanes, 2>},
    {&def<op::clamp>, &map_function<clamp_lanes, 3>},
    {&def<op::negate>, &map_function<negate_lanes, 1, true>},
    {&def<op::abs>, &map_function<abs_lanes, 1>},
    {&def<op::sign>, &map_function<sign_lanes, 1>},
    {&def<op::floor>, &map_function<floor_lanes, 1>},
    {&def<op::ceil>, &map_function<ceil_lanes, 1>},
    {&def<op::round_nearest_even>, &map_function<round_nearest_even_lanes, 1>},
    {&def<op::round_nearest_away>, &map_function<round_nearest_away_lanes, 1>},
    {&def<op::exp>, &map_function<exp_lanes, 1>},
    {&def<op::expm1>, &map_function<expm1_lanes, 1>},
    {&def<op::log>, &map_function<log_lanes, 1>},
    {&def<op::log1p>, &map_function<log1p_lanes, 1>},
    {&def<op::logistic>, &map_function<logistic_lanes, 1>},
    {&def<op::tanh>, &map_function<tanh_lanes, 1>},
    {&def<op::erf>, &map_function<erf_lanes, 1>},
    {&def<op::erfc>, &map_function<erfc_lanes, 1>},
    {&def<op::erf_inv>, &map_function<erf_inv_lanes, 1>},
    {&def<op::lgamma>, &map_function<lgamma_lanes, 1>},
    {&def<op::digamma>, &map_function<digamma_lanes, 1>},
    {&def<op::sqrt>, &map_function<sqrt_lanes, 1>},
    {&def<op::rsqrt>, &map_function<rsqrt_lanes, 1>},
    {&def<op::cbrt>, &map_function<cbrt_lanes, 1>},
    {&def<op::sine>, &map_function<sine_lanes, 1>},
    {&def<op::cosine>, &map_function<cosine_lanes, 1>},
    {&def<op::tan>, &map_function<tan_lanes, 1>},
    {&def<op::is_finite>, &map_function<is_finite_lanes, 1>},
    {&def<op::logical_and>, &map_function<and_lanes, 2>},
    {&def<op::logical_or>, &map_function<or_lanes, 2>},
    {&def<op::logical_xor>, &map_function<xor_lanes, 2>},
    {&def<op::logical_not>, &map_function<not_lanes, 1>},
    {&def<op::popcnt>, &map_function<popcnt_lanes, 1>},
    {&def<op::count_leading_zeros>, &map_function<count_leading_zeros_lanes, 1>},
    {&def<op::shift_left>, &map_function<shift_left_lanes, 2>},
    {&def<op::shift_right_arithmetic>, &map_function<shift_right_arithmetic_lanes, 2>},
    {&def<op::shift_right_logical>, &map_function<shift_right_logical_lanes, 2>},
};

constexpr block_function block_of(const op_def* op, std::span<const std::int64_t> attrs, dtype last,
                                  dtype result) {
  for (const auto& entry : block_table)
    if (entry.op == op) return entry.of_type(last);
  if (op == &def<op::convert>) return convert_function(last, result);
  if (op == &def<op::compare>) return compare_function(static_cast<ops::direction>(attrs[0]), last);
  if (op == &def<op::select>) return select_function(last);
  if (op == &def<op::random_bits>) return &random_bits_block;
  return nullptr;
}
PARTITA_LINKAGE block_function find_block(const op_def* op, std::span<const std::int64_t> attrs,
                                          dtype last, dtype result) {
  return block_of(op, attrs, last, result);
}

PARTITA_LINKAGE block_function find_combine(combiner c, dtype t) {
  return with_computed_type(t, [c]<class T>(std::type_identity<T>) -> block_function {
    // Lanes past the last element need not hold a valid bool.
    using stored_as = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    return with_combiner<T>(
        c, [](auto f) -> block_function { return &combine_block<decltype(f), stored_as>; });
  });
}

PARTITA_LINKAGE void run_chain(dtype t, std::int64_t rows, std::int64_t row,
                               const chain_link* links, std::size_t count) {
  return t == dtype::f64 ? run_chain_of<double>(rows, row, links, count)
                         : run_chain_of<float>(rows, row, links, count);
}

PARTITA_LINKAGE void reduce_chain(dtype t, std::int64_t rows, std::int64_t row,
                                  const chain_link* links, std::size_t count, combiner c,
                                  void* out) {
  return t == dtype::f64
             ? reduce_chain_of<double>(rows, row, links, count, c, static_cast<double*>(out))
             : reduce_chain_of<float>(rows, row, links, count, c, static_cast<float*>(out));
}

PARTITA_LINKAGE row_function find_row_function(combiner c, dtype t) {
  return with_computed_type(t, [c]<class T>(std::type_identity<T>) -> row_function {
    return with_combiner<T>(c, [](auto f) -> row_function { return &reduce_rows<decltype(f), T>; });
  });
}

PARTITA_LINKAGE kernel_function find_library_kernel(const op_def* op, kernel_planner* plan) {
  for (const auto& entry : kernel_table)
    if (entry.op == op) {
      if (plan != nullptr) *plan = entry.plan;
      return entry.run;
    }
  return nullptr;
}

}  // namespace partita::run_detail
