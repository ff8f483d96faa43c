/// cholesky and triangular_solve, one matrix at a time.
#pragma once

#include <limits>

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include <partita/op/registry.hpp>
#include <partita/run/kernels/computed.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

template <class T>
using row_major = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Calls `f(std::type_identity<T>{}, operands, out)` with binary32 or binary64 elements: 16-bit
/// floats are widened, and the result is rounded once.
template <class F>
void in_computed_type(const kernel_context& c, const F& f) {
  const computed_operands wide(c);
  const std::byte* const in[] = {wide.operand<std::byte>(0), wide.operand<std::byte>(1)};
  if (wide.type == dtype::f64)
    f(std::type_identity<double>{}, in, wide.output<std::byte>());
  else
    f(std::type_identity<float>{}, in, wide.output<std::byte>());
  wide.store();
}

/// Copies matrices to aligned memory, so that a result does not depend on the position in the
/// batch.
inline void cholesky_kernel(const kernel_context& c) {
  const shape& s = c.result.shape;
  const std::int64_t n = s[s.rank - 1];
  if (s.elements() == 0) return;
  const bool lower = c.attrs[0] != 0;
  in_computed_type(c, [&]<class T>(std::type_identity<T>, const std::byte* const* in,
                                   std::byte* to) {
    const T* a = reinterpret_cast<const T*>(in[0]);
    T* out = reinterpret_cast<T*>(to);
    const auto size = static_cast<std::int64_t>(sizeof(T));
    auto* work = reinterpret_cast<T*>(c.memory.take(n * n * size));
    // In column-major order the upper triangle of the transposed matrix is a lower one.
    Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>, Eigen::Aligned64> l(work, n, n);
    const std::int64_t row = lower ? 1 : n, column = lower ? n : 1;  // of l, in a and out
    for (const T* end = a + s.elements(); a != end; a += n * n, out += n * n) {
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = j; i < n; ++i) l(i, j) = a[i * column + j * row];
      const bool definite = Eigen::internal::llt_inplace<T, Eigen::Lower>::blocked(l) == -1;
      std::fill_n(out, n * n, T(0));
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = j; i < n; ++i)
          out[i * column + j * row] = definite ? l(i, j) : std::numeric_limits<T>::quiet_NaN();
    }
  });
}

/// Solves op(a) x = b directly, and x op(a) = b as op(a)^T x^T = b^T.
inline void triangular_solve_kernel(const kernel_context& c) {
  const auto o = op::triangular_solve::options(c.attrs.data());
  const shape& s = c.result.shape;
  if (s.elements() == 0) return;
  const std::int64_t n = c.types[0].shape[s.rank - 1], m = s[s.rank - (o.left_side ? 1 : 2)];
  const std::int64_t batches = s.elements() / (n * m);
  const bool flipped = o.transpose_a == o.left_side;  // the matrix to solve with is a^T
  const bool lower = o.lower != flipped;
  in_computed_type(
      c, [&]<class T>(std::type_identity<T>, const std::byte* const* in, std::byte* out) {
        const auto size = static_cast<std::int64_t>(sizeof(T));
        std::byte* matrix = c.memory.take(n * n * size);
        std::byte* sides = c.memory.take(n * m * size);
        Eigen::Map<row_major<T>, Eigen::Aligned64> l(reinterpret_cast<T*>(matrix), n, n);
        Eigen::Map<row_major<T>, Eigen::Aligned64> x(reinterpret_cast<T*>(sides), n, m);
        box a, before, after;
        a.push_back(n, flipped ? 1 : n, n);
        a.push_back(n, flipped ? n : 1, 1);
        const std::int64_t row = o.left_side ? m : 1, column = o.left_side ? 1 : n;  // of x, in b
        before.push_back(n, row, m);
        before.push_back(m, column, 1);
        after.push_back(n, m, row);
        after.push_back(m, 1, column);
        for (std::int64_t i = 0; i < batches; ++i) {
          a.copy(size, in[0] + i * n * n * size, matrix);
          before.copy(size, in[1] + i * n * m * size, sides);
          if (o.unit_diagonal) l.diagonal().setOnes();
          if (lower)
            l.template triangularView<Eigen::Lower>().solveInPlace(x);
          else
            l.template triangularView<Eigen::Upper>().solveInPlace(x);
          after.copy(size, sides, out + i * n * m * size);
        }
      });
}

}  // namespace partita::run_detail
