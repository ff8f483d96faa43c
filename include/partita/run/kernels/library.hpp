/// The kernels as the interpreter finds them.
///
/// Compiling them costs a translation unit about ten seconds; see support/separate.hpp.
#pragma once

#include <span>

#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/convert.hpp>
#include <partita/run/kernels/link.hpp>
#include <partita/support/separate.hpp>

namespace partita::run_detail {

/// The block function of an elementwise op whose last operand has this type; null for other ops and
/// for links of chains. A 16-bit result still has to be rounded.
PARTITA_LINKAGE block_function find_block(const op_def* op, std::span<const std::int64_t> attrs,
                                          dtype last, dtype result);

/// Combines two operands of an element type, elementwise; 16-bit floats lie in binary32.
PARTITA_LINKAGE block_function find_combine(combiner c, dtype t);

/// Runs a chain over elements of type `t` (f32 or f64). Rows have `lanes` elements at least, or
/// there is one of a multiple of `lanes`. No store may go to what a link loads from elsewhere.
PARTITA_LINKAGE void run_chain(dtype t, std::int64_t rows, std::int64_t row,
                               const chain_link* links, std::size_t count);
/// Runs a chain over rows, and combines what it makes of each: one element per row.
PARTITA_LINKAGE void reduce_chain(dtype t, std::int64_t rows, std::int64_t row,
                                  const chain_link* links, std::size_t count, combiner c,
                                  void* out);

/// Combines the elements of each row, to one element per row.
using row_function = void (*)(std::int64_t rows, std::int64_t row, const void* in, void* out);
/// For elements of type `t` that no chain makes on the way.
PARTITA_LINKAGE row_function find_row_function(combiner c, dtype t);

/// The library's kernel of an op that is neither elementwise nor a collective and does not merely
/// pass on its operands, else null.
PARTITA_LINKAGE kernel_function find_library_kernel(const op_def* op);

/// The user's kernel for an op if there is one, else the library's, else null.
inline kernel_function find_kernel(const op_def* op, std::span<const kernel_entry> own) {
  for (const auto& entry : own)
    if (entry.op == op) return entry.run;
  return find_library_kernel(op);
}

}  // namespace partita::run_detail
