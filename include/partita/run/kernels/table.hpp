/// Which kernel computes which op.
#pragma once

#include <partita/run/kernels/dot_general.hpp>
#include <partita/run/kernels/movement.hpp>
#include <partita/run/kernels/reduce.hpp>

namespace partita::detail {

/// Kernels of the ops that are neither elementwise (see find_block) nor collectives.
inline constexpr kernel_entry kernel_table[] = {
    {&def<op::constant>, &constant_kernel},
    {&def<op::iota>, &iota_kernel},
    {&def<op::broadcast_in_dim>, &broadcast_kernel},
    {&def<op::reduce>, &reduce_kernel},
    {&def<op::transpose>, &transpose_kernel},
    {&def<op::reshape>, &copy_kernel},
    {&def<op::tag>, &copy_kernel},
    {&def<op::tiling>, &copy_kernel},
    {&def<op::stop_gradient>, &copy_kernel},
    {&def<op::dot_general>, &dot_general_kernel},
    {&def<op::gather>, &gather_kernel},
    {&def<op::scatter_add>, &scatter_add_kernel},
    {&def<op::concatenate>, &concatenate_kernel},
    {&def<op::slice>, &slice_kernel},
};

/// The user's kernel for an op if there is one, else ours, else null.
inline kernel_function find_kernel(const op_def* op, std::span<const kernel_entry> own) {
  for (const auto& entry : own)
    if (entry.op == op) return entry.run;
  for (const auto& entry : kernel_table)
    if (entry.op == op) return entry.run;
  return nullptr;
}

}  // namespace partita::detail
