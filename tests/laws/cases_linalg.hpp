/// Cases of cholesky and triangular_solve. All numbers are exact: diagonals of triangular matrices
/// are powers of two.
#pragma once

#include "op_case.hpp"

namespace laws {

/// Calls f(row, column) for all elements, in order.
inline pt::array fill_matrices(const tensor_type& t, auto f) {
  const std::int64_t rows = t.shape[t.shape.rank - 2], columns = t.shape[t.shape.rank - 1];
  return data::fill(t, [&](std::int64_t i) { return f(i / columns % rows, i % columns); });
}

/// l l^T for lower triangular l.
inline pt::array positive_definite(const tensor_type& t, std::size_t, data::random& r) {
  const std::int64_t n = t.shape[t.shape.rank - 1];
  std::vector<std::int64_t> l(static_cast<std::size_t>(n * n));
  return fill_matrices(t, [&](std::int64_t row, std::int64_t column) {
    const auto at = [&](std::int64_t i, std::int64_t j) -> std::int64_t& {
      return l[static_cast<std::size_t>(i * n + j)];
    };
    if (row == 0 && column == 0)
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j <= i; ++j)
          at(i, j) = i == j ? std::int64_t{1} << r.in(0, 2) : r.in(-1, 1);
    std::int64_t sum = 0;
    for (std::int64_t k = 0; k <= std::min(row, column); ++k) sum += at(row, k) * at(column, k);
    return sum;
  });
}

/// A matrix that serves with either triangle, and a right-hand side.
inline pt::array triangular_system(const tensor_type& t, std::size_t k, data::random& r) {
  if (k == 1) return data::integers(t, r, -3, 3);
  return fill_matrices(t, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t size = row == column ? std::int64_t{1} << r.in(0, 1) : r.in(0, 2);
    return r.one_in(2) ? size : -size;
  });
}

inline void add_linalg_cases(std::vector<op_case>& list) {
  const auto factor = [&](tensor_type a, std::int64_t lower) {
    list.push_back({&pt::def<pt::op::cholesky>, {a}, {lower}, {}, 0, 0, positive_definite, true});
  };
  for (std::int64_t lower : {0, 1}) {
    factor(f32({4, 4}), lower);
    factor(f64({6, 3, 3}), lower);
    factor(f32({2, 1, 5, 5}), lower);
    factor(f64({4, 1, 1}), lower);
    factor({dtype::bf16, {2, 3, 3}}, lower);
    factor({dtype::f16, {3, 2, 2}}, lower);
  }
  const auto solve = [&](tensor_type a, tensor_type b, ints attrs) {
    list.push_back(
        {&pt::def<pt::op::triangular_solve>, {a, b}, attrs, {}, 0, 0, triangular_system});
  };
  for (std::int64_t options = 0; options < 8; ++options) {
    const std::int64_t lower = options & 1, unit = options >> 1 & 1, transposed = options >> 2;
    solve(f32({4, 4}), f32({4, 6}), {1, lower, unit, transposed});
    solve(f64({2, 3, 3}), f64({2, 4, 3}), {0, lower, unit, transposed});
  }
  solve(f64({4, 1, 3, 3}), f64({4, 1, 3, 1}), {1, 1, 0, 0});
  solve(f32({5, 1, 1}), f32({5, 1, 8}), {1, 0, 0, 1});
  solve(f32({7, 7}), f32({1, 7}), {0, 1, 1, 0});
  solve({dtype::bf16, {2, 3, 3}}, {dtype::bf16, {2, 3, 4}}, {1, 1, 0, 0});
  solve({dtype::f16, {3, 3}}, {dtype::f16, {12, 3}}, {0, 0, 0, 1});
}

}  // namespace laws
