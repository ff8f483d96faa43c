/// Affine maps and embedding tables.
#pragma once

#include <partita/dsl/nn/check.hpp>
#include <partita/dsl/ops.hpp>

namespace partita::nn {

/// Returns x w, or x w + bias, over the last dimension.
///
/// Shapes    x (..., i), weights (i, o), bias (o) -> (..., o)
/// Errors    S101 i differs, S102 element types differ, S103 the bias does not broadcast
template <Tensor X, Tensor W>
constexpr auto linear(const X& x, const W& weights) {
  const detail::in_scope here("linear", x);
  return matmul(x, weights);
}
/// Returns x w + bias over the last dimension.
template <Tensor X, Tensor W, Tensor Bias>
constexpr auto linear(const X& x, const W& weights, const Bias& bias) {
  const detail::in_scope here("linear", x);
  return matmul(x, weights) + bias;
}

/// Reads rows of a table by their numbers, which are clamped to valid rows.
///
/// Shapes    table (rows, d...), rows (i...) of an integer type -> (i..., d...)
/// Errors    S111 the numbers are not integers
template <Tensor Table, Tensor Rows>
constexpr auto embedding(const Table& table, const Rows& rows) {
  const detail::in_scope here("embedding", table);
  return take<0>(table, rows);
}

}  // namespace partita::nn
