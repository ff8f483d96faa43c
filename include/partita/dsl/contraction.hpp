/// Products over contracted dimensions: matmul, dot_general, einsum.
#pragma once

#include <partita/dsl/apply.hpp>
#include <partita/dsl/einsum.hpp>

namespace partita {

/// Multiplies matrices, the last two dimensions of its operands.
///
/// Shapes    (..., m, k), (k, n) -> (..., m, n); (..., m, k), (..., k, n) -> (..., m, n) with equal
///           leading dimensions; vectors as in NumPy: (k), (..., k, n) -> (..., n); (..., m, k),
///           (k) -> (..., m); (k), (k) -> ()
/// Errors    S101 contracted extents differ, S106 other ranks; those of op/dot_general.hpp
///
/// `matmul<precision::highest>(x, w)` requests more than the default precision; a `dot_algorithm`
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

/// Multiplies and sums over contracted dimensions. `dot_general<axes<0>, axes<0>, axes<2>,
/// axes<1>>(x, y)` states the batch dimensions of both operands, then the contracted dimensions of
/// both.
///
/// Shapes    lhs, rhs -> (batch, free dimensions of lhs, free dimensions of rhs)
/// Errors    those of op/dot_general.hpp
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

/// Computes a sum of products in Einstein's notation: `einsum<"bqhd,bkhd->bhqk">(q, k)`. Each
/// dimension has one letter; letters that are not in the output are summed over. Without an output,
/// it consists of the letters that occur once, in alphabetical order. `...` matches any number of
/// leading dimensions, which are the same in every operand that has it. More than two operands are
/// contracted from left to right.
///
/// Errors    S160 the text is not a formula for the operands, S161 a letter is repeated in one
///           term, S162 an output letter is not in the operands, S163 an operand has another rank,
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
