/// Linear algebra on batches of matrices.
#pragma once

#include <partita/dsl/apply.hpp>

namespace partita {

using ops::triangular_options;

/// Computes the triangular factor of symmetric positive-definite matrices: l with a = l l^T, or,
/// for `cholesky<false>(a)`, u with a = u^T u. Reads that triangle only. The other triangle of the
/// result is zero. If a matrix is not positive definite, the result has NaN.
///
/// Shapes    a (..., n, n) -> (..., n, n)
/// Errors    S104 not a floating-point type, S170 not a batch of square matrices
template <bool Lower = true, Tensor A>
constexpr auto cholesky(const A& a) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) { return ops::cholesky(b, v[0], Lower); }, a);
}

/// Solves a x = b for a lower triangular a, or another system, by the options:
/// `triangular_solve<triangular_options{.lower = false, .transpose_a = true}>(a, b)`.
///
/// Shapes    a (..., n, n), b (..., n, m) -> (..., n, m); b (..., m, n) if a is on the right of x
/// Errors    S102 element types differ, S104 not a floating-point type, S170 not a batch of square
///           matrices, S172 b does not fit a
template <triangular_options Options = triangular_options{}, Tensor A, Tensor B>
constexpr auto triangular_solve(const A& a, const B& b) {
  return dsl_detail::apply(
      [](builder& to, const value_id* v, const shape&) {
        return ops::triangular_solve(to, v[0], v[1], Options);
      },
      a, b);
}

/// Solves a x = b, given the factor l = cholesky(a).
///
/// Shapes    l (..., n, n), b (..., n, m) -> (..., n, m)
template <Tensor L, Tensor B>
constexpr auto cholesky_solve(const L& l, const B& b) {
  return triangular_solve<triangular_options{.transpose_a = true}>(l, triangular_solve(l, b));
}

}  // namespace partita
