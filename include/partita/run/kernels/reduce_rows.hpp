/// Reductions of rows and columns, by combiner and element type: the parts of reduce.
#pragma once

#include <algorithm>
#include <numeric>

#include <partita/run/kernels/chain.hpp>
#include <partita/run/kernels/combine.hpp>

namespace partita::run_detail {

/// The sizes of a reduction as (outer, reduced, inner).
struct reduction_sizes {
  std::int64_t outer = 1, reduced = 1, inner = 1;
  bool direct = true;  ///< true if the elements are stored in this order

  constexpr reduction_sizes(const shape& from, span<const std::int64_t> attrs) {
    bool after = false;  // true after a reduced dimension
    for (int d = 0; d < from.rank; ++d) {
      if (from[d] == 1) continue;
      const bool here = is_reduced(attrs, d);
      if (here && inner != 1) direct = false;
      (here ? reduced : after ? inner : outer) *= from[d];
      after = after || here;
    }
  }
  static constexpr bool is_reduced(span<const std::int64_t> attrs, int d) {
    return op::reduce::reduced(attrs.data(), static_cast<int>(attrs.size()), d);
  }
};

/// Reduces a contiguous row of integers.
template <class f, class T>
T reduce_row(const T* x, std::int64_t n) {
  constexpr std::int64_t width = 2 * lanes;
  if (n < width) return std::accumulate(x, x + n, f::template identity<T>(), f::template one<T>);
  T sum[width];
  std::copy_n(x, width, sum);
  std::int64_t i = width;
  for (; i + width <= n; i += width)
    for (std::int64_t j = 0; j < width; ++j) sum[j] = f::one(sum[j], x[i + j]);
  for (std::int64_t j = 0; i + j < n; ++j) sum[j] = f::one(sum[j], x[i + j]);
  for (std::int64_t half = width / 2; half > 0; half /= 2)
    for (std::int64_t j = 0; j < half; ++j) sum[j] = f::one(sum[j], sum[j + half]);
  return sum[0];
}

template <class f, class T>
void reduce_rows(std::int64_t rows, std::int64_t row, const void* in, void* out) {
  if constexpr (std::is_floating_point_v<T>) {
    const chain_link load{link::load, const_cast<void*>(in), 1, 0};
    return reduce_chain_of<T>(rows, row, &load, 1, f::what, static_cast<T*>(out));
  } else {
    for (std::int64_t i = 0; i < rows; ++i)
      static_cast<T*>(out)[i] = reduce_row<f>(static_cast<const T*>(in) + i * row, row);
  }
}

/// Reduces (rows, columns) -> (columns), column tile by column tile.
template <class f, class T>
void reduce_columns(const T* x, std::int64_t rows, std::int64_t columns, T* out) {
  constexpr std::int64_t width = 256, height = 32;
  alignas(alignment) T part[width];
  alignas(alignment) wider<T> total[width];
  for (std::int64_t c = 0; c < columns; c += width) {
    const std::int64_t n = std::min(width, columns - c);
    for (std::int64_t j = 0; j < n; ++j) total[j] = f::template identity<wider<T>>();
    for (std::int64_t r = 0; r < rows; r += height) {
      const std::int64_t last = std::min(rows, r + height);
      std::copy_n(x + r * columns + c, n, part);
      for (std::int64_t k = r + 1; k < last; ++k) {
        const T* __restrict row = x + k * columns + c;
        for (std::int64_t j = 0; j < n; ++j) part[j] = f::one(part[j], row[j]);
      }
      for (std::int64_t j = 0; j < n; ++j)
        total[j] = f::one(total[j], static_cast<wider<T>>(part[j]));
    }
    for (std::int64_t j = 0; j < n; ++j) out[c + j] = static_cast<T>(total[j]);
  }
}

/// Reduces (outer, reduced, inner) -> (outer, inner).
template <class f, class T>
void reduce_middle(const T* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner,
                   T* out) {
  if (inner == 1) return reduce_rows<f, T>(outer, reduced, x, out);
  for (std::int64_t o = 0; o < outer; ++o)
    reduce_columns<f>(x + o * reduced * inner, reduced, inner, out + o * inner);
}

}  // namespace partita::run_detail
