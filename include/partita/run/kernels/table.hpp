/// Which kernel computes which op.
#pragma once

#include <partita/run/kernels/convolution.hpp>
#include <partita/run/kernels/cumsum.hpp>
#include <partita/run/kernels/dot_general.hpp>
#include <partita/run/kernels/library.hpp>
#include <partita/run/kernels/movement.hpp>
#include <partita/run/kernels/reduce.hpp>
#include <partita/run/kernels/window.hpp>

namespace partita::detail {

/// Kernels of the ops that are neither elementwise (see find_block) nor collectives.
inline constexpr kernel_entry kernel_table[] = {
    {&def<op::constant>, &constant_kernel},
    {&def<op::iota>, &iota_kernel},
    {&def<op::broadcast_in_dim>, &broadcast_kernel},
    {&def<op::reduce>, &reduce_kernel},
    {&def<op::reduce_window>, &reduce_window_kernel},
    {&def<op::select_and_scatter>, &select_and_scatter_kernel},
    {&def<op::select_and_gather>, &select_and_gather_kernel},
    {&def<op::cumsum>, &cumsum_kernel},
    {&def<op::transpose>, &transpose_kernel},
    {&def<op::reshape>, &copy_kernel},
    {&def<op::tag>, &copy_kernel},
    {&def<op::tiling>, &copy_kernel},
    {&def<op::stop_gradient>, &copy_kernel},
    {&def<op::dot_general>, &dot_general_kernel},
    {&def<op::convolution>, &convolution_kernel},
    {&def<op::gather>, &gather_kernel},
    {&def<op::scatter_add>, &scatter_add_kernel},
    {&def<op::concatenate>, &concatenate_kernel},
    {&def<op::slice>, &slice_kernel},
};

PARTITA_KERNEL_LINKAGE block_function find_block(const op_def* op,
                                                 std::span<const std::int64_t> attrs, dtype last,
                                                 dtype result) {
  const dtype t = computed(last);
  if (op == &def<op::add>) return binary_function<add_lanes>(t);
  if (op == &def<op::subtract>) return binary_function<subtract_lanes>(t);
  if (op == &def<op::multiply>) return binary_function<multiply_lanes>(t);
  if (op == &def<op::divide>) return binary_function<divide_lanes>(t);
  if (op == &def<op::maximum>) return binary_function<maximum_lanes>(t);
  if (op == &def<op::minimum>) return binary_function<minimum_lanes>(t);
  if (op == &def<op::exp>) return math_function<exp_lanes>(t);
  if (op == &def<op::log>) return math_function<log_lanes>(t);
  if (op == &def<op::tanh>) return math_function<tanh_lanes>(t);
  if (op == &def<op::erf>) return math_function<erf_lanes>(t);
  if (op == &def<op::sqrt>) return math_function<sqrt_lanes>(t);
  if (op == &def<op::rsqrt>) return math_function<rsqrt_lanes>(t);
  if (op == &def<op::convert>) return convert_function(last, result);
  const auto number = [t]<class F>(F f) -> block_function {
    switch (t) {
      case dtype::f32:
        return f(std::type_identity<float>{});
      case dtype::f64:
        return f(std::type_identity<double>{});
      case dtype::i32:
        return f(std::type_identity<std::int32_t>{});
      case dtype::i64:
        return f(std::type_identity<std::int64_t>{});
      default:
        return f(std::type_identity<std::uint8_t>{});
    }
  };
  if (op == &def<op::negate>)
    return number([]<class T>(std::type_identity<T>) { return &negate_block<T>; });
  if (op == &def<op::compare>)
    return number([&]<class T>(std::type_identity<T>) {
      return compare_function<T>(static_cast<ops::direction>(attrs[0]));
    });
  if (op == &def<op::select>) switch (size_of(t)) {
      case 1:
        return &select_block<std::uint8_t>;
      case 4:
        return &select_block<std::uint32_t>;
      default:
        return &select_block<std::uint64_t>;
    }
  return nullptr;
}

PARTITA_KERNEL_LINKAGE block_function find_combine(combiner c, dtype t) {
  return with_combined_type(t, [c]<class T>(std::type_identity<T>) -> block_function {
    return with_combiner<T>(
        c, [](auto f) -> block_function { return &combine_block<decltype(f), T>; });
  });
}

PARTITA_KERNEL_LINKAGE kernel_function find_library_kernel(const op_def* op) {
  for (const auto& entry : kernel_table)
    if (entry.op == op) return entry.run;
  return nullptr;
}

}  // namespace partita::detail
