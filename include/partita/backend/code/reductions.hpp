/// Reductions with constant shapes.
#pragma once

#include <cstdint>

#include <partita/run/kernels/reduce_rows.hpp>

namespace partita::code {

/// (Outer, Reduced, Inner) -> (Outer, Inner), in the order of the kernels (run/kernels/reduce.hpp).
template <combiner C, std::int64_t Outer, std::int64_t Reduced, std::int64_t Inner, class T>
void reduce(const T* x, T* out) {
  using f = run_detail::combine<C>;
  for (std::int64_t o = 0; o < Outer; ++o) {
    if constexpr (Inner != 1) {
      run_detail::reduce_columns<f>(x + o * Reduced * Inner, Reduced, Inner, out + o * Inner);
    } else if constexpr (std::is_floating_point_v<T>) {
      const run_detail::chain_link load{run_detail::link::load, const_cast<T*>(x), 1, 0};
      out[o] = run_detail::reduce_chain_row<f, T>(o, Reduced, &load, 1);
    } else {
      out[o] = run_detail::reduce_row<f>(x + o * Reduced, Reduced);
    }
  }
}

}  // namespace partita::code
