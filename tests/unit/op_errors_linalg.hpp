/// Errors of cholesky and triangular_solve.
#pragma once

#include "op_errors.hpp"

inline void add_linalg_errors(std::vector<op_error>& list) {
  namespace pt = partita;
  const auto f32 = [](pt::shape s) { return pt::tensor_type{pt::dtype::f32, s}; };
  const auto f64 = [](pt::shape s) { return pt::tensor_type{pt::dtype::f64, s}; };
  const auto i32 = [](pt::shape s) { return pt::tensor_type{pt::dtype::i32, s}; };
  const pt::op_def *cholesky = &pt::def<pt::op::cholesky>,
                   *solve = &pt::def<pt::op::triangular_solve>;
  const auto put = [&](std::string_view message, const pt::op_def* op,
                       std::vector<pt::tensor_type> operands, std::vector<std::int64_t> attrs) {
    list.push_back({message.substr(0, 4), op, operands, attrs, {}, message});
  };
  put("S104 cholesky: element type i32 is not a floating-point type", cholesky, {i32({4, 4})}, {1});
  put("S170 cholesky: tensor<4x5xf32> is not a batch of square matrices (..., n, n)", cholesky,
      {f32({4, 5})}, {1});
  put("S170 cholesky: tensor<4xf32> is not a batch of square matrices (..., n, n)", cholesky,
      {f32({4})}, {1});
  put("S171 cholesky: 1 attributes, each 0 or 1, are needed", cholesky, {f32({4, 4})}, {});
  put("S171 cholesky: 1 attributes, each 0 or 1, are needed", cholesky, {f32({4, 4})}, {2});

  put("S102 triangular_solve: element types f32 and f64 differ; use convert", solve,
      {f32({4, 4}), f64({4, 2})}, {1, 1, 0, 0});
  put("S104 triangular_solve: element type i32 is not a floating-point type", solve,
      {i32({4, 4}), i32({4, 2})}, {1, 1, 0, 0});
  put("S170 triangular_solve: tensor<2x4x3xf32> is not a batch of square matrices (..., n, n)",
      solve, {f32({2, 4, 3}), f32({2, 4, 2})}, {1, 1, 0, 0});
  put("S171 triangular_solve: 4 attributes, each 0 or 1, are needed", solve,
      {f32({4, 4}), f32({4, 2})}, {1, 1, 0});
  put("S171 triangular_solve: 4 attributes, each 0 or 1, are needed", solve,
      {f32({4, 4}), f32({4, 2})}, {1, 1, -1, 0});
  put("S172 triangular_solve: b tensor<2x4xf32> does not fit a tensor<4x4xf32> on the left", solve,
      {f32({4, 4}), f32({2, 4})}, {1, 1, 0, 0});
  put("S172 triangular_solve: b tensor<4x2xf32> does not fit a tensor<4x4xf32> on the right", solve,
      {f32({4, 4}), f32({4, 2})}, {0, 1, 0, 0});
  put("S172 triangular_solve: b tensor<3x4x2xf32> does not fit a tensor<2x4x4xf32> on the left",
      solve, {f32({2, 4, 4}), f32({3, 4, 2})}, {1, 1, 0, 0});
  put("S172 triangular_solve: b tensor<4xf32> does not fit a tensor<4x4xf32> on the left", solve,
      {f32({4, 4}), f32({4})}, {1, 1, 0, 0});
}
