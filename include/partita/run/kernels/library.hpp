/// The functions through which the interpreter finds kernels.
///
/// Compiling them costs a translation unit about ten seconds; see support/separate.hpp.
#pragma once

#include <span>

#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/convert.hpp>
#include <partita/run/kernels/link.hpp>
#include <partita/support/separate.hpp>

namespace partita::run_detail {

/// Returns the block function of an elementwise op whose last operand has this type; null for other
/// ops and for links of chains. The caller has to round a 16-bit result.
PARTITA_LINKAGE block_function find_block(const op_def* op, std::span<const std::int64_t> attrs,
                                          dtype last, dtype result);

/// Returns the function that combines two operands elementwise; 16-bit floats are stored in
/// binary32.
PARTITA_LINKAGE block_function find_combine(combiner c, dtype t);

/// Runs a chain over elements of type `t` (f32 or f64). Rows have at least `lanes` elements, or
/// there is a single row with a multiple of `lanes`. A store must not write to memory that a link
/// loads at another offset.
PARTITA_LINKAGE void run_chain(dtype t, std::int64_t rows, std::int64_t row,
                               const chain_link* links, std::size_t count);
/// Runs a chain over rows, and combines its results to one element for each row.
PARTITA_LINKAGE void reduce_chain(dtype t, std::int64_t rows, std::int64_t row,
                                  const chain_link* links, std::size_t count, combiner c,
                                  void* out);

/// Combines the elements of each row to one element.
using row_function = void (*)(std::int64_t rows, std::int64_t row, const void* in, void* out);
/// Returns the row function for elements of type `t` that no chain computes.
PARTITA_LINKAGE row_function find_row_function(combiner c, dtype t);

/// Returns the library's kernel of an op, and its planner if it has one; null for elementwise ops,
/// collectives, and ops that only pass on their operands.
PARTITA_LINKAGE kernel_function find_library_kernel(const op_def* op,
                                                    kernel_planner* plan = nullptr);

/// Returns the user's kernel for an op if there is one, else the library's, else null.
inline kernel_entry find_kernel(const op_def* op, std::span<const kernel_entry> own) {
  for (const auto& entry : own)
    if (entry.op == op) return entry;
  kernel_entry found{op};
  found.run = find_library_kernel(op, &found.plan);
  return found;
}

}  // namespace partita::run_detail
