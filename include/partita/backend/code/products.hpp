/// Matrix products and reductions with constant shapes: the calls of the kernels in run/kernels
/// that the sizes decide, without the other ones being compiled.
#pragma once

#include <cstdint>

#include <partita/run/kernels/product.hpp>
#include <partita/run/kernels/reduce_rows.hpp>

namespace partita::code {

/// True if `multiply` computes a dot_general, for each index of its batch, from operands of
/// type `t` in place.
constexpr bool multiplies(const run_detail::dot_plan& p, dtype t) {
  return (t == dtype::f32 || t == dtype::f64) && p.rows * p.columns * p.batches > 0 &&
         p.depth > 0 && !p.left.packed && !p.right.packed && p.batch.count <= 1;
}
/// True if `reduce` computes a reduction with this number of operands, all like `from`.
constexpr bool reduces(const run_detail::reduction_sizes& r, int operands,
                       const tensor_type& from) {
  return r.direct && operands == 1 && from.shape.elements() > 0 &&
         !run_detail::is_half(from.element);
}

/// A matrix in memory: element (row, column) at row * RowStride + column * ColumnStride.
template <class T, std::int64_t Rows, std::int64_t Columns, std::int64_t RowStride,
          std::int64_t ColumnStride>
struct matrix_of {
  const T* data;
  static constexpr run_detail::matrix_view view{Rows, Columns, RowStride, ColumnStride, false};
};
template <std::int64_t Rows, std::int64_t Columns, std::int64_t RowStride = Columns,
          std::int64_t ColumnStride = 1, class T>
matrix_of<T, Rows, Columns, RowStride, ColumnStride> matrix(const T* x) {
  return {x};
}

/// out = l r, in the order of summation that dot_general has (see run/kernels/product.hpp).
template <class T, class L, class R>
void multiply(const L& left, const R& right, T* out) {
  constexpr run_detail::matrix_view l = L::view, r = R::view;
  static_assert(l.columns == r.rows);
  std::fill_n(out, l.rows * r.columns, T(0));
  if constexpr (r.columns == 1) {
    run_detail::eigen_vector_product<T, l.column_stride == 1>(left.data, l, right.data,
                                                              r.row_stride, out, 1);
  } else if constexpr (l.rows == 1) {
    constexpr run_detail::matrix_view t{r.columns, r.rows, r.column_stride, r.row_stride, false};
    run_detail::eigen_vector_product<T, t.column_stride == 1>(right.data, t, left.data,
                                                              l.column_stride, out, 1);
  } else {
    constexpr auto order = [](const run_detail::matrix_view& m) {
      return m.column_stride == 1 ? Eigen::RowMajor : Eigen::ColMajor;
    };
    run_detail::eigen_product<T, order(l), order(r)>(left.data, l, right.data, r, out, r.columns);
  }
}
/// Rows [row, row + M) of out = l r, N packets of columns from `column` on, summed in registers in
/// the order of the inner dimension. `right` is row-major.
template <class Packet, int M, int N, class T, class L, std::int64_t Columns>
EIGEN_ALWAYS_INLINE void multiply_tile(const L& left, const T* right, T* out, std::int64_t row,
                                       std::int64_t column) {
  namespace inner = Eigen::internal;
  constexpr run_detail::matrix_view l = L::view;
  constexpr int width = inner::unpacket_traits<Packet>::size;
  [&]<int... I, int... J>(std::integer_sequence<int, I...>, std::integer_sequence<int, J...>)
      __attribute__((always_inline)) {
    Packet sum[M * N] = {(static_cast<void>(I), inner::pset1<Packet>(T(0)))...};
    for (std::int64_t k = 0; k < l.columns; ++k) {
      const T* x = left.data + row * l.row_stride + k * l.column_stride;
      const Packet y[N] = {inner::ploadu<Packet>(right + k * Columns + column + J * width)...};
      ((sum[I] = inner::pmadd(inner::pset1<Packet>(x[I / N * l.row_stride]), y[I % N], sum[I])),
       ...);
    }
    (inner::pstoreu(out + (row + I / N) * Columns + column + I % N * width, sum[I]), ...);
  }
  (std::make_integer_sequence<int, M * N>{}, std::make_integer_sequence<int, N>{});
}

/// True if `multiply_small` takes a product of this size: its right operand fits a near cache.
template <class T, class L, class R>
inline constexpr bool is_small_product =
    std::is_floating_point_v<T>&& R::view.columns >= 4 &&
    R::view.rows* R::view.columns* static_cast<std::int64_t>(sizeof(T)) <= 65536 &&
    L::view.rows <= 256;

/// out = l r for sizes at which packing the operands, as Eigen's product does, costs as much as
/// multiplying them: tiles of constant size, all in registers. The sums run in another order than
/// in `multiply`, so last bits may differ.
template <class T, class L, class R>
void multiply_small(const L& left, const R& right, T* out) {
  namespace inner = Eigen::internal;
  constexpr run_detail::matrix_view r = R::view;
  constexpr auto columns = static_cast<int>(r.columns), rows = static_cast<int>(L::view.rows);
  using packet = typename inner::find_best_packet<T, columns>::type;
  constexpr int width = inner::unpacket_traits<packet>::size;
  constexpr int registers = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS == 32 ? 24 : 8;
  constexpr int n = std::min(columns / width, registers == 24 ? 4 : 2);
  constexpr int m = std::min(rows, std::max(1, registers / n));
  alignas(run_detail::alignment) T packed[r.column_stride == 1 ? 1 : r.rows * r.columns];
  const T* y = right.data;
  if constexpr (r.column_stride != 1) {
    for (std::int64_t j = 0; j < r.columns; ++j)
      for (std::int64_t k = 0; k < r.rows; ++k)
        packed[k * r.columns + j] = right.data[k * r.row_stride + j * r.column_stride];
    y = packed;
  }
  const auto of_rows = [&]<int M>(std::integral_constant<int, M>, int row) {
    int j = 0;
    for (; j + n * width <= columns; j += n * width)
      multiply_tile<packet, M, n, T, L, columns>(left, y, out, row, j);
    if constexpr (columns % (n * width) != 0)
      for (; j < columns; j += width)  // (the last packet may begin before the end of another)
        multiply_tile<packet, M, 1, T, L, columns>(left, y, out, row, std::min(j, columns - width));
  };
  int row = 0;
  for (; row + m <= rows; row += m) of_rows(std::integral_constant<int, m>{}, row);
  if constexpr (rows % m != 0) of_rows(std::integral_constant<int, rows % m>{}, row);
}

/// (Outer, Reduced, Inner) -> (Outer, Inner), in the order of the kernels (run/kernels/reduce.hpp).
template <combiner C, std::int64_t Outer, std::int64_t Reduced, std::int64_t Inner, class T>
void reduce(const T* x, T* out) {
  using f = run_detail::combine<run_detail::combiner_of<T>(C)>;
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
