/// Linear algebra of batches of matrices.
#pragma once

#include <partita/dsl/apply.hpp>

namespace partita {

using ops::triangular_options;

/// The triangular factor of symmetric positive-definite matrices: l with a = l l^T, or with
/// `cholesky<false>(a)` u with a = u^T u. Reads that triangle only, gives zeros in the other one
/// and NaN where a matrix is not positive definite.
///
/// Shapes    a (..., n, n) -> (..., n, n)
template <bool Lower = true, Tensor A>
constexpr auto cholesky(const A& a) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) { return ops::cholesky(b, v[0], Lower); }, a);
}

/// The solution x of a x = b, where a is lower triangular, or as the options say:
/// `triangular_solve<triangular_options{.lower = false, .transpose_a = true}>(a, b)`.
///
/// Shapes    a (..., n, n), b (..., n, m) -> (..., n, m); b (..., m, n) if a stands right of x
template <triangular_options Options = triangular_options{}, Tensor A, Tensor B>
constexpr auto triangular_solve(const A& a, const B& b) {
  return dsl_detail::apply(
      [](builder& to, const value_id* v, const shape&) {
        return ops::triangular_solve(to, v[0], v[1], Options);
      },
      a, b);
}

/// The solution x of a x = b from the factor l = cholesky(a).
///
/// Shapes    l (..., n, n), b (..., n, m) -> (..., n, m)
template <Tensor L, Tensor B>
constexpr auto cholesky_solve(const L& l, const B& b) {
  return triangular_solve<triangular_options{.transpose_a = true}>(l, triangular_solve(l, b));
}

}  // namespace partita
