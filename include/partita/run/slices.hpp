/// Slices of arrays, and putting results of slices together: what a loop over a tile-map entry
/// does.
#pragma once

#include <partita/op/combine.hpp>
#include <partita/run/executor.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::detail {

/// Piece i of n along a dimension.
inline array slice_of(const array& a, int dim, std::int64_t n, std::int64_t i) {
  tensor_type t = a.type();
  t.shape[dim] /= n;
  array out(t);
  std::int64_t start[max_rank] = {};
  start[dim] = t.shape[dim] * i;
  copy_box(size_of(t.element), t.shape, a.shape(), start, a.bytes(), t.shape, nullptr,
           out.mutable_bytes());
  return out;
}
/// The piece becomes piece i of `out` along a dimension.
inline void put_slice(const array& piece, int dim, std::int64_t i, array& out) {
  std::int64_t start[max_rank] = {};
  start[dim] = piece.shape()[dim] * i;
  copy_box(size_of(piece.element()), piece.shape(), piece.shape(), nullptr, piece.bytes(),
           out.shape(), start, out.mutable_bytes());
}
/// Every element plus a number.
inline array moved_by(const array& a, std::int64_t by, const run_options& options = {}) {
  array wide(tensor_type{dtype::f64, {}});
  *wide.mutable_data<double>() = static_cast<double>(by);
  return run_op(def<op::add>, std::vector{a, as_type(wide, a.element())}, {}, a.type(), options);
}
inline array combined(combiner combine, const array& a, const array& b,
                      const run_options& options = {}) {
  return run_op(combining_op(combine), std::vector{a, b}, {}, a.type(), options);
}

}  // namespace partita::detail
