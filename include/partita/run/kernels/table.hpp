/// The table of kernels by op.
#pragma once

#include <span>

#include <partita/run/kernels/chain.hpp>
#include <partita/run/kernels/convolution.hpp>
#include <partita/run/kernels/cumsum.hpp>
#include <partita/run/kernels/dot_general.hpp>
#include <partita/run/kernels/elementwise_table.hpp>
#include <partita/run/kernels/fold.hpp>
#include <partita/run/kernels/gather.hpp>
#include <partita/run/kernels/library.hpp>
#include <partita/run/kernels/linalg.hpp>
#include <partita/run/kernels/movement.hpp>
#include <partita/run/kernels/random.hpp>
#include <partita/run/kernels/reduce.hpp>
#include <partita/run/kernels/reduce_precision.hpp>
#include <partita/run/kernels/sort.hpp>
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
    {&def<op::broadcast_in_dim>, &broadcast_in_dim_kernel},
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

/// By row of elementwise_kernels.
inline constexpr auto block_functions = []<class... Rows>(std::type_identity<std::tuple<Rows...>>) {
  using function = block_function (*)(dtype);
  return std::array<function, sizeof...(Rows)>{&Rows::of_type...};
}(std::type_identity<elementwise_kernels>{});

constexpr block_function block_of(const op_def* op, std::span<const std::int64_t> attrs, dtype last,
                                  dtype result) {
  constexpr std::size_t none = std::tuple_size_v<elementwise_kernels>;
  if (const std::size_t row = elementwise_row(op->id); row < none)
    return block_functions[row](last);
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
