/// Products over contracted dimensions as functions of typed tensors: matmul, dot_general, einsum.
#pragma once

#include <partita/dsl/apply.hpp>
#include <partita/dsl/einsum.hpp>

namespace partita {

/// Matrix product of the last two dimensions: (..., m, k) x (k, n) or (..., m, k) x (..., k, n),
/// leading dimensions equal. A vector is contracted, as in NumPy: (k) x (..., k, n) -> (..., n),
/// (..., m, k) x (k) -> (..., m), and (k) x (k) is a scalar.
///
/// `matmul<precision::highest>(x, w)` requests more than the usual precision; a `dot_algorithm`
/// specifies how the product is computed.
template <product_precision Exactness = product_precision(), Tensor L, Tensor R>
constexpr auto matmul(const L& lhs, const R& rhs) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) -> value_id {
        if (b.failed()) return -1;
        const shape l = b.type(v[0]).shape;
        const shape r = b.type(v[1]).shape;
        const bool has_vector = l.rank == 1 || r.rank == 1;
        if (l.rank < 1 || r.rank < 1 || (r.rank > 2 && r.rank != l.rank && !has_vector)) {
          b.p.error.record("S106", "matmul: ", b.type(v[0]), " and ", b.type(v[1]),
                           " are not (..., m, k) and (k, n) or (..., k, n), or with a vector (k)");
          return -1;
        }
        const int contracted = r.rank == 1 ? 0 : r.rank - 2;
        if (!same_extent(l[l.rank - 1], r[contracted])) {
          b.p.error.record("S101", "matmul: contracted extents differ: dimension ", l.rank - 1,
                           " of lhs ", b.type(v[0]), " has size ", l[l.rank - 1], ", dimension ",
                           contracted, " of rhs ", b.type(v[1]), " has size ", r[contracted]);
          return -1;
        }
        std::int64_t batch[max_rank] = {};
        for (int i = 0; i < max_rank; ++i) batch[i] = i;
        const ops::ints lead{batch, static_cast<std::size_t>(has_vector ? 0 : r.rank - 2)};
        const std::int64_t k_left[] = {l.rank - 1}, k_right[] = {contracted};
        return ops::dot_general(b, v[0], v[1], {lead, lead, k_left, k_right, Exactness});
      },
      lhs, rhs);
}

/// `dot_general<axes<0>, axes<0>, axes<2>, axes<1>>(x, y)`: batch dimensions of both, then
/// contracted dimensions of both. Result: batch, free dimensions of lhs, free dimensions of rhs.
template <class LhsBatch, class RhsBatch, class LhsContract, class RhsContract,
          product_precision Exactness = product_precision(), Tensor L, Tensor R>
constexpr auto dot_general(const L& lhs, const R& rhs) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::dot_general(b, v[0], v[1],
                                {LhsBatch::list(), RhsBatch::list(), LhsContract::list(),
                                 RhsContract::list(), Exactness});
      },
      lhs, rhs);
}

/// Sum of products in Einstein's notation: `einsum<"bqhd,bkhd->bhqk">(q, k)`. One letter per
/// dimension; letters that are not in the output are summed over. Without an output: the letters
/// that stand once, in alphabetical order. `...` stands for any number of leading dimensions, the
/// same ones in every operand that has it. More than two operands are contracted from left to
/// right.
///
/// Errors    S160 the text is no formula for the operands, S161 a letter stands twice in one term,
///           S162 an output letter is not in the operands, S163 an operand has another rank,
///           S164 extents of one letter differ
template <fixed_text Formula, product_precision Exactness = product_precision(), Tensor... Xs>
requires(sizeof...(Xs) > 0) constexpr auto einsum(const Xs&... xs) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return dsl_detail::emit_einsum(b, Formula.view(), {v, sizeof...(Xs)}, Exactness);
      },
      xs...);
}

}  // namespace partita
