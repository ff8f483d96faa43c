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

/// True if Eigen's kernel reads results only through its mapper. (Later versions do not always.)
inline constexpr bool reads_no_result = !EIGEN_VERSION_AT_LEAST(3, 4, 90);

/// The result of a product, as Eigen's kernel reads and writes it. The first product of a sum reads
/// zeros, which are never written.
template <class T>
class product_result : public Eigen::internal::blas_data_mapper<T, Eigen::Index, Eigen::ColMajor> {
  using base = Eigen::internal::blas_data_mapper<T, Eigen::Index, Eigen::ColMajor>;
  using index = Eigen::Index;

 public:
  class LinearMapper : public base::LinearMapper {
   public:
    LinearMapper(T* data, bool first) : base::LinearMapper(data), first_(first) {}
    template <class Packet>
    EIGEN_ALWAYS_INLINE Packet loadPacket(index i) const {
      if (first_) return Eigen::internal::pset1<Packet>(T(0));
      return base::LinearMapper::template loadPacket<Packet>(i);
    }

   private:
    bool first_;
  };
  product_result(T* data, index stride, bool first) : base(data, stride), first_(first) {}
  EIGEN_ALWAYS_INLINE LinearMapper getLinearMapper(index i, index j) const {
    return {&base::operator()(i, j), first_};
  }
  EIGEN_ALWAYS_INLINE T& operator()(index i, index j) const {  // for `+=`
    T& to = base::operator()(i, j);
    if (first_) to = T(0);
    return to;
  }
  template <class Packet>
  EIGEN_ALWAYS_INLINE Packet gatherPacket(index i, index j) const {
    if (first_) return Eigen::internal::pset1<Packet>(T(0));
    return base::template gatherPacket<Packet>(i, j);
  }

 private:
  bool first_;
};

/// Calls Eigen's product kernel for one pair of storage orders, as `out += l r`, or as `out = l r`
/// if `first`. Eigen's expressions would compile four more algorithms for each pair.
template <class T, int Left, int Right>
void eigen_product(const T* a, const matrix_view& l, const T* b, const matrix_view& r, T* out,
                   std::int64_t out_stride, bool first = false) {
  namespace internal = Eigen::internal;  // the name that Eigen's macros expect
  using index = Eigen::Index;
  using traits = internal::gebp_traits<T, T>;
  constexpr int row_major = Eigen::RowMajor, column_major = Eigen::ColMajor;
  constexpr int left_order = Left == row_major ? column_major : row_major,
                right_order = Right == row_major ? column_major : row_major;
  using left_matrix = internal::const_blas_data_mapper<T, index, left_order>;
  using right_matrix = internal::const_blas_data_mapper<T, index, right_order>;
  const left_matrix x(a, Left == row_major ? l.row_stride : l.column_stride);
  const right_matrix y(b, Right == row_major ? r.row_stride : r.column_stride);
  internal::gemm_pack_lhs<T, index, right_matrix, traits::mr, traits::LhsProgress,
                          typename traits::LhsPacket4Packing, right_order>
      pack_right;
  internal::gemm_pack_rhs<T, index, left_matrix, traits::nr, left_order> pack_left;
  internal::gebp_kernel<T, T, index, product_result<T>, traits::mr, traits::nr, false, false>
      multiply;
  // The blocks. The result is row-major, so Eigen multiplies the transposes.
  index most_rows = l.rows, most_columns = r.columns, most_depth = l.columns;
  internal::computeProductBlockingSizes<T, T, 1, index>(most_depth, most_columns, most_rows);
  most_rows = std::min<index>(most_rows, l.rows);
  most_columns = std::min<index>(most_columns, r.columns);
  const auto right_size = static_cast<std::size_t>(most_depth * most_columns),
             left_size = static_cast<std::size_t>(most_depth * most_rows);
  ei_declare_aligned_stack_constructed_variable(T, right, right_size, nullptr);
  ei_declare_aligned_stack_constructed_variable(T, left, left_size, nullptr);
  const bool left_once =
      most_columns != r.columns && most_depth == l.columns && most_rows == l.rows;
  for (index j = 0; j < r.columns; j += most_columns) {
    const index columns = std::min<index>(most_columns, r.columns - j);
    for (index k = 0; k < l.columns; k += most_depth) {
      const index depth = std::min<index>(most_depth, l.columns - k);
      pack_right(right, y.getSubMapper(j, k), depth, columns);
      for (index i = 0; i < l.rows; i += most_rows) {
        const index rows = std::min<index>(most_rows, l.rows - i);
        if (!left_once || j == 0) pack_left(left, x.getSubMapper(k, i), depth, rows);
        multiply(product_result<T>(out + i * out_stride + j, out_stride, first && k == 0), right,
                 left, columns, depth, rows, T(1));
      }
    }
  }
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

/// Computes `out += l r`, or `out = l r` if `first`, with rows of out `out_stride` elements apart.
template <class T>
void multiply_matrices(const T* a, const matrix_view& l, const T* b, const matrix_view& r, T* out,
                       std::int64_t out_stride, bool first = false) {
  constexpr bool floats = std::is_floating_point_v<T>;
  if (first && (!floats || !reads_no_result || r.columns == 1 || l.rows == 1))
    for (std::int64_t i = 0; i < l.rows; ++i) std::fill_n(out + i * out_stride, r.columns, T(0));
  if constexpr (floats) {
    if (r.columns == 1) return eigen_vector_product(a, l, b, r.row_stride, out, out_stride);
    if (l.rows == 1) {
      const matrix_view t{r.columns, r.rows, r.column_stride, r.row_stride};
      return eigen_vector_product(b, t, a, l.column_stride, out, 1);
    }
    constexpr int row = Eigen::RowMajor, column = Eigen::ColMajor;
    const bool left = l.column_stride == 1, right = r.column_stride == 1;  // true if row-major
    const auto run = [&](auto product) { product(a, l, b, r, out, out_stride, first); };
    if (left && right)
      run(eigen_product<T, row, row>);
    else if (left)
      run(eigen_product<T, row, column>);
    else if (right)
      run(eigen_product<T, column, row>);
    else
      run(eigen_product<T, column, column>);
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
    multiply_matrices<T>(reinterpret_cast<const T*>(x), p.left, reinterpret_cast<const T*>(y),
                         p.right, to, p.columns, true);
  }
}

}  // namespace partita::run_detail
