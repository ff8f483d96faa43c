/// The collectives, on the copies of a value that an emulated mesh holds.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include <partita/op/combine.hpp>
#include <partita/op/registry.hpp>
#include <partita/run/kernels/library.hpp>
#include <partita/run/kernels/strided.hpp>
#include <partita/run/varying.hpp>

namespace partita::detail {

/// A collective and how its operand and result lie in memory.
struct collective_call {
  const partita::mesh& mesh;
  const op_def* def;
  std::span<const std::int64_t> attrs;
  tensor_type from, to;
  axis_set from_axes, to_axes;
  const std::byte* operand;  ///< copy i at i * padded_bytes(from)
  std::byte* result;

  const std::byte* operand_at(const coordinates& c) const {
    return operand + copy_at(mesh, from_axes, c) * padded_bytes(from);
  }
};

/// Combines blocks into `sum`, in the order of the calls. 16-bit floats are kept in binary32.
class accumulator {
 public:
  accumulator(combiner c, dtype t, std::int64_t elements, scratch& memory)
      : type_(t), n_(round_up(elements, lanes)) {
    combine_ = find_combine(c, t);
    size_ = size_of(computed(t));
    for (auto& s : sum_) s = memory.take(n_ * size_ + alignment);
    if (is_half(t)) wide_ = memory.take(n_ * size_ + alignment);
  }
  void add(const std::byte* x) {
    if (is_half(type_)) {
      const void* in[] = {x};
      widen_function(type_)(n_, in, wide_);
      x = wide_;
    }
    if (first_) {
      std::memcpy(sum_[0], x, static_cast<std::size_t>(n_ * size_));
      first_ = false;
      return;
    }
    const void* in[] = {sum_[0], x};
    combine_(n_, in, sum_[1]);
    std::swap(sum_[0], sum_[1]);
  }
  void store(std::byte* out) {
    if (is_half(type_)) {
      const void* in[] = {sum_[0]};
      narrow_function(type_)(n_, in, out);
    } else {
      std::memcpy(out, sum_[0], static_cast<std::size_t>(n_ * size_));
    }
  }

 private:
  dtype type_;
  std::int64_t n_, size_;
  block_function combine_;
  std::byte* sum_[2] = {};
  std::byte* wide_ = nullptr;
  bool first_ = true;
};

inline void fill_with_identity(combiner c, const tensor_type& t, std::byte* out) {
  const std::int64_t bits = identity_bits(c, t.element);
  with_type(t.element, [&]<class T>(std::type_identity<T>) {
    const T value = is_floating(t.element) ? convert_element<T>(std::bit_cast<double>(bits))
                                           : convert_element<T>(bits);
    std::fill_n(reinterpret_cast<T*>(out), t.shape.elements(), value);
  });
}

/// Does a value combined with itself give the value?
constexpr bool idempotent(combiner c) { return c != combiner::add && c != combiner::multiply; }

/// Computes one copy of the result. Sums run in the order of the mesh coordinates, axes major to
/// minor, so they do not depend on the number of threads.
inline void run_collective(const collective_call& call, std::int64_t copy, scratch& memory) {
  const mesh& m = call.mesh;
  const collective_axes axes(m, call.def, call.attrs);
  const coordinates here = coordinates_of(m, call.to_axes, copy);
  std::byte* out = call.result + copy * padded_bytes(call.to);
  const std::int64_t size = size_of(call.to.element), n = call.to.shape.elements();
  if (n == 0) return;
  const bool reduces = call.def == &def<op::all_reduce> || call.def == &def<op::reduce_scatter>;
  std::int64_t start[max_rank] = {};

  if (reduces) {
    const auto combine_by = static_cast<combiner>(call.attrs[0]);
    const bool scatters = call.def == &def<op::reduce_scatter>;
    accumulator sum(combine_by, call.to.element, n, memory);
    std::byte* piece = scatters ? memory.take(padded_bytes(call.to)) : nullptr;
    if (scatters)
      for (int d = 0; d < call.to.shape.rank; ++d)
        start[d] = axes.piece(m, d, here) * call.to.shape[d];
    for (std::int64_t i = 0; i < axes.count; ++i) {
      coordinates there = here;
      axes.move_to(m, i, there);
      const std::byte* x = call.operand_at(there);
      if (scatters) {
        copy_box(size, call.to.shape, call.from.shape, start, x, call.to.shape, nullptr, piece);
        x = piece;
      }
      sum.add(x);
      // All members hold the same copy, and equal values combine to the value.
      if (idempotent(combine_by) && (axes_of(m, axes.dims) & call.from_axes) == 0) break;
    }
    sum.store(out);
  } else if (call.def == &def<op::all_slice>) {
    for (int d = 0; d < call.to.shape.rank; ++d)
      start[d] = axes.piece(m, d, here) * call.to.shape[d];
    copy_box(size, call.to.shape, call.from.shape, start, call.operand_at(here), call.to.shape,
             nullptr, out);
  } else if (call.def == &def<op::all_gather>) {
    for (std::int64_t i = 0; i < axes.count; ++i) {
      coordinates there = here;
      axes.move_to(m, i, there);
      for (int d = 0; d < call.to.shape.rank; ++d)
        start[d] = axes.piece(m, d, there) * call.from.shape[d];
      copy_box(size, call.from.shape, call.from.shape, nullptr, call.operand_at(there),
               call.to.shape, start, out);
    }
  } else if (call.def == &def<op::permute>) {
    const std::int64_t to = axes.piece(m, 0, here), shift = call.attrs[1];
    std::int64_t from = shift == 0 ? axes.count - 1 - to : to - shift;
    if (call.attrs[0] == static_cast<std::int64_t>(combiner::stack))
      from = op::roll::places(from, axes.count);
    if (from < 0 || from >= axes.count)
      return fill_with_identity(static_cast<combiner>(call.attrs[0]), call.to, out);
    coordinates there = here;
    axes.move_to(m, from, there);
    std::memcpy(out, call.operand_at(there), static_cast<std::size_t>(n * size));
  } else {  // all_to_all
    const auto gathered = static_cast<int>(call.attrs[0]), sliced = static_cast<int>(call.attrs[1]);
    shape part = call.from.shape;
    part[sliced] = call.to.shape[sliced];
    start[sliced] = axes.piece(m, 0, here) * call.to.shape[sliced];
    for (std::int64_t i = 0; i < axes.count; ++i) {
      coordinates there = here;
      axes.move_to(m, i, there);
      std::int64_t to_start[max_rank] = {};
      to_start[gathered] = i * call.from.shape[gathered];
      copy_box(size, part, call.from.shape, start, call.operand_at(there), call.to.shape, to_start,
               out);
    }
  }
}

}  // namespace partita::detail
