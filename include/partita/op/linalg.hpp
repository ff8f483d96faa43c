/// cholesky and triangular_solve, for batches of square matrices.
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

/// True if the first operand has a floating-point type and its last two dimensions are equal.
///
/// Errors    S104 not a floating-point type, S170 not a batch of square matrices
constexpr bool need_square_matrices(infer_context& c, std::string_view name) {
  need_floating(c, name);
  const shape& a = c.operands[0].shape;
  if (a.rank < 2 || !same_extent(a[a.rank - 2], a[a.rank - 1]))
    c.fail("S170", name, ": ", c.operands[0], " is not a batch of square matrices (..., n, n)");
  return !c.error;
}
/// True if there are `count` attributes and each is 0 or 1.
///
/// Errors    S171 an attribute is not 0 or 1, or missing
constexpr bool need_flags(infer_context& c, std::string_view name, std::size_t count) {
  bool good = c.attrs.size() == count;
  for (auto a : c.attrs) good = good && (a == 0 || a == 1);
  if (!good) c.fail("S171", name, ": ", count, " attributes, each 0 or 1, are needed");
  return good;
}

/// Returns a mask of shape (..., n, n) that compares each element's row with its column: `eq` is
/// the diagonal, `gt` the strict lower triangle.
constexpr value_id triangle(builder& b, ops::direction d, const shape& of) {
  tensor_type square{dtype::i32, {}};
  for (int i = 0; i < 2; ++i) square.shape.push_back(of[of.rank - 1]);
  const value_id row = ops::iota(b, square, 0);
  const value_id column = ops::iota(b, square, 1);
  const std::int64_t dims[] = {of.rank - 2, of.rank - 1};
  return ops::broadcast_in_dim(b, ops::compare(b, d, row, column), of, dims);
}
/// Multiplies the matrices of a batch, contracting dimension `x_dim` of x with `y_dim` of y. Both
/// count from the first dimension of a matrix.
constexpr value_id matrix_product(builder& b, value_id x, int x_dim, value_id y, int y_dim) {
  if (x < 0 || y < 0) return -1;
  const int batch = b.type(x).shape.rank - 2;
  std::int64_t lead[max_rank] = {};
  for (int i = 0; i < batch; ++i) lead[i] = i;
  const ops::ints dims{lead, static_cast<std::size_t>(batch)};
  const std::int64_t contract_x[] = {batch + x_dim}, contract_y[] = {batch + y_dim};
  return ops::dot_general(b, x, y, {dims, dims, contract_x, contract_y});
}
/// Transposes every matrix of a batch.
constexpr value_id matrix_transpose(builder& b, value_id x) {
  if (x < 0) return -1;
  const int rank = b.type(x).shape.rank;
  std::int64_t permutation[max_rank] = {};
  for (int i = 0; i < rank; ++i) permutation[i] = i;
  permutation[rank - 2] = rank - 1;
  permutation[rank - 1] = rank - 2;
  return ops::transpose(b, x, {permutation, static_cast<std::size_t>(rank)});
}

/// Computes the triangular factor of symmetric positive-definite matrices: a = l l^T with l lower
/// triangular, or a = u^T u with u upper triangular. Reads only that triangle of a. The other
/// triangle of the result is zero, which StableHLO leaves open. If a matrix is not positive
/// definite, the triangle is NaN.
///
/// Shapes    a (..., n, n) -> (..., n, n)
/// Attributes: lower (1 for l, 0 for u)
/// Tile map  ([i, n, n]) -> ([i, n, n]); the matrices cannot be sharded
/// Cost      n^3 / 3 flop per matrix
/// Errors    S104 not a floating-point type, S170 not a batch of square matrices, S171 not a flag
/// Source    derivative: Murray, arXiv:1602.07527
struct cholesky {
  static constexpr std::string_view name = "cholesky";
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    if (!need_flags(c, name, 1) || !need_square_matrices(c, name)) return;
    c.result = c.operands[0];
    auto& s = c.result.shape;
    s[s.rank - 1] = s[s.rank - 2] = merge_extent(s[s.rank - 1], s[s.rank - 2]);
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d + 2 < c.result.shape.rank; ++d) c.tile(c.result.shape[d], d).operand(0, d);
  }
  /// For symmetric changes of a, let p be the lower triangle of l^T g with its diagonal halved. The
  /// cotangent is the symmetric part of l^-T p l^-1.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const bool lower = b.p.attrs(c.op)[0] != 0;
    const shape s = b.type(c.cotangent).shape;
    const dtype t = b.type(c.cotangent).element;
    const value_id y = b.p.op(c.op).result;
    const value_id l = lower ? y : matrix_transpose(b, y);
    const value_id g = lower ? c.cotangent : matrix_transpose(b, c.cotangent);
    const value_id product = matrix_product(b, l, 0, g, 0);
    const value_id half = ops::scalar(b, t, 0.5);
    const value_id halved = ops::multiply(b, product, half);
    const value_id on_diagonal =
        ops::select(b, triangle(b, ops::direction::eq, s), halved, ops::scalar(b, t, 0));
    const value_id p = ops::select(b, triangle(b, ops::direction::gt, s), product, on_diagonal);
    const value_id left = ops::triangular_solve(b, l, p, {.transpose_a = true});
    const value_id both = ops::triangular_solve(b, l, left, {.left_side = false});
    const value_id mirrored = matrix_transpose(b, both);
    c.operands[0] = ops::multiply(b, ops::add(b, both, mirrored), half);
  }
  static constexpr std::int64_t flops(const cost_context& c) {
    const shape& s = c.result.shape;
    return saturating_multiply(s.elements(), s[s.rank - 1]) / 3;
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.flag("lower");
  }
};

/// Solves op(a) x = b, or x op(a) = b, where a is triangular and op(a) is a or a^T. Reads only the
/// named triangle of a. With unit_diagonal, the diagonal is not read and counts as 1. If the
/// diagonal has a zero, x has inf or NaN.
///
/// Shapes    a (..., n, n), b (..., n, m), or (..., m, n) if a is on the right of x -> shape of b
/// Attributes: left_side, lower (before op is applied), unit_diagonal, transpose_a: each 1 or 0
///           (StableHLO's ADJOINT is TRANSPOSE here: complex numbers are not supported)
/// Tile map  left ([i, n, n], [i, n, j]) -> ([i, n, j]),
///           right ([i, n, n], [i, j, n]) -> ([i, j, n]); n cannot be sharded
/// Cost      n^2 m flop per matrix
/// Errors    S102 element types differ, S104 not a floating-point type, S170 a is not a batch of
///           square matrices, S171 not a flag, S172 b does not fit a
struct triangular_solve {
  static constexpr std::string_view name = "triangular_solve";
  static constexpr int operand_count = 2;
  static constexpr ops::triangular_options options(const std::int64_t* attrs) {
    return {attrs[0] != 0, attrs[1] != 0, attrs[2] != 0, attrs[3] != 0};
  }
  static constexpr void infer(infer_context& c) {
    same_elements(c, name);
    if (!need_flags(c, name, 4) || !need_square_matrices(c, name)) return;
    const shape& a = c.operands[0].shape;
    c.result = c.operands[1];
    shape& x = c.result.shape;
    bool good = x.rank == a.rank;
    const int solved = x.rank - (c.attrs[0] != 0 ? 2 : 1);
    for (int d = 0; good && d < x.rank; ++d) {
      if (d + 2 >= x.rank && d != solved) continue;
      good = same_extent(x[d], a[d]);
      x[d] = merge_extent(x[d], a[d]);
    }
    if (!good)
      c.fail("S172", "triangular_solve: b ", c.operands[1], " does not fit a ", c.operands[0],
             " on the ", c.attrs[0] != 0 ? "left" : "right");
  }
  static constexpr void tile_map(tile_map_context& c) {
    const int batch = c.result.shape.rank - 2;
    for (int d = 0; d < batch; ++d) c.tile(c.result.shape[d], d).operand(0, d).operand(1, d);
    const int free = batch + (c.attrs[0] != 0 ? 1 : 0);
    c.tile(c.result.shape[free], free).operand(1, free);
  }
  /// The cotangent of b is the result's cotangent, solved with the transposed matrix. The cotangent
  /// of a is minus the product of b's cotangent and x, restricted to the triangle.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const ops::triangular_options o = options(b.p.attrs(c.op).data());
    const value_id a = b.p.operand(c.op, 0), x = b.p.op(c.op).result;
    ops::triangular_options transposed = o;
    transposed.transpose_a = !o.transpose_a;
    const value_id solved = ops::triangular_solve(b, a, c.cotangent, transposed);
    c.operands[1] = solved;
    if (!c.wanted[0]) return;
    const bool solved_first = o.left_side != o.transpose_a;
    const int contract = o.left_side ? 1 : 0;
    const value_id product =
        matrix_product(b, solved_first ? solved : x, contract, solved_first ? x : solved, contract);
    using enum ops::direction;
    const auto kept = o.lower ? (o.unit_diagonal ? gt : ge) : (o.unit_diagonal ? lt : le);
    const tensor_type type = b.type(a);
    const value_id negated = ops::negate(b, product);
    c.operands[0] =
        ops::select(b, triangle(b, kept, type.shape), negated, ops::scalar(b, type.element, 0));
  }
  static constexpr std::int64_t flops(const cost_context& c) {
    const shape& a = c.operands[0].shape;
    return saturating_multiply(c.result.shape.elements(), a[a.rank - 1]);
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.flag("left_side");
    f.flag("lower");
    f.flag("unit_diagonal");
    f.flag("transpose_a");
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::cholesky)
PARTITA_OP(op::triangular_solve)
}  // namespace partita

namespace partita::ops {

constexpr value_id cholesky(builder& b, value_id a, bool lower) {
  return b.emit(def<op::cholesky>, {a}, {lower ? 1 : 0});
}
constexpr value_id triangular_solve(builder& b, value_id a, value_id x,
                                    const triangular_options& o) {
  return b.emit(def<op::triangular_solve>, {a, x},
                {o.left_side, o.lower, o.unit_diagonal, o.transpose_a});
}

}  // namespace partita::ops
