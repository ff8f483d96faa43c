/// Slices of arrays, and assembly of results from slices: the work of a loop over a tile-map entry.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include <partita/core/halo.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/reduce.hpp>
#include <partita/op/roll.hpp>
#include <partita/run/executor.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

/// Returns slice i of n along a dimension.
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
/// Copies a slice to position i of `out` along a dimension.
inline void put_slice(const array& piece, int dim, std::int64_t i, array& out) {
  std::int64_t start[max_rank] = {};
  start[dim] = piece.shape()[dim] * i;
  copy_box(size_of(piece.element()), piece.shape(), piece.shape(), nullptr, piece.bytes(),
           out.shape(), start, out.mutable_bytes());
}
/// Returns elements [start, start + length) along a dimension; elements out of bounds are `fill`.
inline array piece_of(const array& a, int dim, std::int64_t start, std::int64_t length,
                      const array& fill) {
  tensor_type t = a.type();
  t.shape[dim] = length;
  array out(t);
  const std::size_t size = static_cast<std::size_t>(size_of(t.element));
  for (std::int64_t i = 0; i < out.size(); ++i)
    std::memcpy(out.mutable_bytes() + static_cast<std::size_t>(i) * size, fill.bytes(), size);
  const std::int64_t from = start < 0 ? 0 : start;
  const std::int64_t to = std::min(start + length, a.shape()[dim]);
  if (from >= to) return out;
  shape box = t.shape;
  box[dim] = to - from;
  std::int64_t source[max_rank] = {}, target[max_rank] = {};
  source[dim] = from;
  target[dim] = from - start;
  copy_box(size_of(t.element), box, a.shape(), source, a.bytes(), t.shape, target,
           out.mutable_bytes());
  return out;
}
/// Returns the identity element of a combiner.
inline array identity_of(combiner c, dtype t) {
  return run_op(def<op::constant>, std::vector<array>{}, std::vector{identity_bits(c, t)},
                tensor_type{t, {}});
}
/// Returns elements [start, start + length) of a dimension that wraps around.
inline array ring_piece(const array& a, int dim, std::int64_t start, std::int64_t length) {
  const array turned =
      run_op(def<op::roll>, std::vector{a}, std::vector<std::int64_t>{dim, -start}, a.type());
  return piece_of(turned, dim, 0, length, a);
}
/// Returns the slice of an operand that iteration `i` of a loop with a halo reads.
inline array halo_piece(const halo_cut& cut, int k, std::int64_t i,
                        std::span<const array> operands) {
  const halo_range& r = cut.ranges[k];
  const array& x = operands[static_cast<std::size_t>(k)];
  if (r.fill == combiner::stack && r.fill_operand < 0)
    return ring_piece(x, cut.operand_dims[k], r.first + i * r.step, r.length);
  const array fill = r.fill_operand >= 0 ? operands[static_cast<std::size_t>(r.fill_operand)]
                                         : identity_of(r.fill, x.element());
  return piece_of(x, cut.operand_dims[k], r.start(i, x.shape()[cut.operand_dims[k]]), r.length,
                  fill);
}
/// Returns the part of its result that iteration `i` keeps.
inline array kept_of(const halo_cut& cut, const array& made, std::int64_t i, std::int64_t extent) {
  if (cut.made == 0) return made;
  return piece_of(made, cut.result_dim, cut.kept_from(i, extent), extent, made);
}

/// Adds a number to every element.
inline array moved_by(const array& a, std::int64_t by, const run_options& options = {}) {
  array wide(tensor_type{dtype::f64, {}});
  *wide.mutable_data<double>() = static_cast<double>(by);
  return run_op(def<op::add>, std::vector{a, as_type(wide, a.element())}, {}, a.type(), options);
}
inline array combined(combiner combine, const array& a, const array& b,
                      const run_options& options = {}) {
  return run_op(combining_op(combine), std::vector{a, b}, {}, a.type(), options);
}

/// Adds carries over slices along a factor that carries (a scan). y has the op's results on n
/// slices of x, next to each other; each slice of y is combined with the totals of the slices
/// before it.
inline void add_carries(const factor& f, int dim, std::int64_t n, const array& x, array& y,
                        const run_options& options = {}) {
  array before;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t at = f.backwards ? n - 1 - i : i;
    const array piece = slice_of(x, dim, n, at);
    tensor_type line{x.element(), {}};
    std::vector<std::int64_t> others;
    for (int d = 0; d < x.shape().rank; ++d) {
      if (d == dim) continue;
      others.push_back(d);
      line.shape.push_back(x.shape()[d]);
    }
    if (i > 0) {
      const array own = slice_of(y, dim, n, at);
      const array all =
          run_op(def<op::broadcast_in_dim>, std::vector{before}, others, own.type(), options);
      put_slice(combined(f.carry, own, all, options), dim, at, y);
    }
    const std::vector<std::int64_t> attrs{static_cast<std::int64_t>(f.carry), dim};
    const array total = run_op(def<op::reduce>, std::vector{piece}, attrs, line, options);
    before = i == 0 ? total : combined(f.carry, before, total, options);
  }
}

}  // namespace partita::run_detail
