/// Matrix products on strided views, by element type: the parts of dot_general.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include <Eigen/Core>

#include <partita/op/dot_general.hpp>
#include <partita/op/registry.hpp>
#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/elementwise.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

/// A dimension with its strides in two operands (the same in both where only one has it).
struct dot_dim {
  std::int64_t extent = 1, a = 0, b = 0;
};

/// Dimensions merged as far as both strides allow.
struct dot_dims {
  dot_dim at[max_rank];
  int count = 0;

  constexpr void push_back(const dot_dim& d) {
    if (d.extent != 1) at[count++] = d;
  }
  constexpr void merge() {
    int kept = 0;
    for (int i = 0; i < count; ++i) {
      dot_dim& last = at[kept - (kept > 0)];
      if (kept > 0 && last.a == at[i].a * at[i].extent && last.b == at[i].b * at[i].extent)
        last = {last.extent * at[i].extent, at[i].a, at[i].b};
      else
        at[kept++] = at[i];
    }
    count = kept;
  }
  constexpr std::int64_t extent() const {
    std::int64_t n = 1;
    for (int i = 0; i < count; ++i) n *= at[i].extent;
    return n;
  }
};

/// An operand as a matrix: element (row, column) at row * row_stride + column * column_stride.
struct matrix_view {
  std::int64_t rows = 1, columns = 1, row_stride = 1, column_stride = 1;
  bool packed = false;  ///< true if copied to row-major order first
};

/// The plan of a product: batch offsets, and one matrix product for each.
struct dot_plan {
  dot_dims batch, m, n, k_left, k_right;
  matrix_view left, right;
  std::int64_t rows = 1, columns = 1, depth = 1, batches = 1;

  constexpr dot_plan(const shape& ls, const shape& rs, std::span<const std::int64_t> attrs) {
    const op::dot_general::roles r(attrs.data(), static_cast<int>(attrs.size()), ls.rank, rs.rank);
    const strides l(ls), q(rs);
    for (int i = 0; i < r.batch; ++i)
      batch.push_back({ls[r.lhs_batch[i]], l[r.lhs_batch[i]], q[r.rhs_batch[i]]});
    for (int d = 0; d < ls.rank; ++d)
      if (!r.lhs_bound[d]) m.push_back({ls[d], l[d], l[d]});
    for (int d = 0; d < rs.rank; ++d)
      if (!r.rhs_bound[d]) n.push_back({rs[d], q[d], q[d]});
    // A sum may run in any order: major to minor in lhs gives the best chance to merge.
    dot_dims k;
    for (int i = 0; i < r.contract; ++i)
      k.push_back({ls[r.lhs_contract[i]], l[r.lhs_contract[i]], q[r.rhs_contract[i]]});
    for (int i = 1; i < k.count; ++i)
      for (int j = i; j > 0 && k.at[j].a > k.at[j - 1].a; --j) std::swap(k.at[j], k.at[j - 1]);
    batch.merge();
    m.merge();
    n.merge();
    k.merge();
    batches = batch.extent();
    rows = m.extent();
    columns = n.extent();
    depth = k.extent();
    for (int i = 0; i < k.count; ++i) {
      k_left.push_back({k.at[i].extent, k.at[i].a, k.at[i].a});
      k_right.push_back({k.at[i].extent, k.at[i].b, k.at[i].b});
    }
    left = view(m, k_left);
    right = view(k_right, n);
  }

  /// Returns a view that needs no copy if rows and columns are one strided dimension each, one with
  /// stride 1.
  static constexpr matrix_view view(const dot_dims& r, const dot_dims& c) {
    matrix_view v;
    v.rows = r.extent();
    v.columns = c.extent();
    if (r.count <= 1 && c.count <= 1) {
      v.row_stride = r.count ? r.at[0].a : 0;
      v.column_stride = c.count ? c.at[0].a : 0;
      if (r.count == 0) v.row_stride = v.column_stride == 1 ? v.columns : 1;
      if (c.count == 0) v.column_stride = v.row_stride == 1 ? v.rows : 1;
      if (v.row_stride == 1 || v.column_stride == 1) return v;
    }
    v.packed = true;
    v.row_stride = v.columns;
    v.column_stride = 1;
    return v;
  }
  static void pack(const dot_dims& r, const dot_dims& c, std::int64_t size, const std::byte* from,
                   std::byte* to) {
    box b;
    std::int64_t stride = r.extent() * c.extent();
    for (const auto* dims : {&r, &c})
      for (int i = 0; i < dims->count; ++i) {
        stride /= dims->at[i].extent;
        b.push_back(dims->at[i].extent, dims->at[i].a, stride);
      }
    b.copy(size, from, to);
  }
};

/// Calls Eigen's product kernel for one pair of storage orders, as `out += l r`. Eigen's
/// expressions would compile four more algorithms for each pair.
template <class T, int Left, int Right>
void eigen_product(const T* a, const matrix_view& l, const T* b, const matrix_view& r, T* out,
                   std::int64_t out_stride) {
  namespace inner = Eigen::internal;
  constexpr int row_major = Eigen::RowMajor, dynamic = Eigen::Dynamic;
  using index = Eigen::Index;
  inner::gemm_blocking_space<row_major, T, T, dynamic, dynamic, dynamic> blocking(
      l.rows, r.columns, l.columns, 1, true);
  inner::general_matrix_matrix_product<index, T, Left, false, T, Right, false, row_major, 1>::run(
      l.rows, r.columns, l.columns, a, Left == row_major ? l.row_stride : l.column_stride, b,
      Right == row_major ? r.row_stride : r.column_stride, out, 1, out_stride, T(1), blocking,
      nullptr);
}

/// Multiplies a matrix by a vector, as `out += m v`. `RowMajor`: true if the elements of a row of m
/// are contiguous.
template <class T, bool RowMajor>
void eigen_vector_product(const T* m, const matrix_view& l, const T* v, std::int64_t stride, T* out,
                          std::int64_t out_stride) {
  using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using map = Eigen::Map<const matrix, 0, Eigen::OuterStride<>>;
  using vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
  const Eigen::Map<const vector, 0, Eigen::InnerStride<>> x(v, l.columns,
                                                            Eigen::InnerStride<>(stride));
  Eigen::Map<vector, 0, Eigen::InnerStride<>> y(out, l.rows, Eigen::InnerStride<>(out_stride));
  if constexpr (RowMajor)
    y.noalias() += map(m, l.rows, l.columns, Eigen::OuterStride<>(l.row_stride)) * x;
  else
    y.noalias() += map(m, l.columns, l.rows, Eigen::OuterStride<>(l.column_stride)).transpose() * x;
}
template <class T>
void eigen_vector_product(const T* m, const matrix_view& l, const T* v, std::int64_t stride, T* out,
                          std::int64_t out_stride) {
  if (l.column_stride == 1)
    eigen_vector_product<T, true>(m, l, v, stride, out, out_stride);
  else
    eigen_vector_product<T, false>(m, l, v, stride, out, out_stride);
}

/// Computes `out += l r`, with rows of out `out_stride` elements apart.
template <class T>
void multiply_matrices(const T* a, const matrix_view& l, const T* b, const matrix_view& r, T* out,
                       std::int64_t out_stride) {
  if constexpr (std::is_floating_point_v<T>) {
    if (r.columns == 1) return eigen_vector_product(a, l, b, r.row_stride, out, out_stride);
    if (l.rows == 1) {
      const matrix_view t{r.columns, r.rows, r.column_stride, r.row_stride};
      return eigen_vector_product(b, t, a, l.column_stride, out, 1);
    }
    constexpr int row = Eigen::RowMajor, column = Eigen::ColMajor;
    const bool left = l.column_stride == 1, right = r.column_stride == 1;  // true if row-major
    if (left && right)
      eigen_product<T, row, row>(a, l, b, r, out, out_stride);
    else if (left)
      eigen_product<T, row, column>(a, l, b, r, out, out_stride);
    else if (right)
      eigen_product<T, column, row>(a, l, b, r, out, out_stride);
    else
      eigen_product<T, column, column>(a, l, b, r, out, out_stride);
  } else {
    for (std::int64_t i = 0; i < l.rows; ++i)
      for (std::int64_t k = 0; k < l.columns; ++k) {
        const T x = a[i * l.row_stride + k * l.column_stride];
        for (std::int64_t j = 0; j < r.columns; ++j) {
          T& sum = out[i * out_stride + j];
          sum = add_lanes::one(sum,
                               multiply_lanes::one(x, b[k * r.row_stride + j * r.column_stride]));
        }
      }
  }
}

template <class T>
void dot_kernel_of(const dot_plan& p, const std::byte* a, const std::byte* b, std::byte* out,
                   scratch& memory) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  std::byte* left = p.left.packed ? memory.take(p.rows * p.depth * size) : nullptr;
  std::byte* right = p.right.packed ? memory.take(p.depth * p.columns * size) : nullptr;
  for (std::int64_t i = 0; i < p.batches; ++i) {
    std::int64_t rest = i, a_offset = 0, b_offset = 0;
    for (int d = p.batch.count; d-- > 0; rest /= p.batch.at[d].extent) {
      a_offset += rest % p.batch.at[d].extent * p.batch.at[d].a;
      b_offset += rest % p.batch.at[d].extent * p.batch.at[d].b;
    }
    const std::byte* x = a + a_offset * size;
    const std::byte* y = b + b_offset * size;
    if (left) {
      dot_plan::pack(p.m, p.k_left, size, x, left);
      x = left;
    }
    if (right) {
      dot_plan::pack(p.k_right, p.n, size, y, right);
      y = right;
    }
    T* to = reinterpret_cast<T*>(out) + i * p.rows * p.columns;
    std::fill_n(to, p.rows * p.columns, T(0));
    multiply_matrices<T>(reinterpret_cast<const T*>(x), p.left, reinterpret_cast<const T*>(y),
                         p.right, to, p.columns);
  }
}

}  // namespace partita::run_detail
