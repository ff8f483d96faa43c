/// Kernels that create elements or move them in boxes: constant, literal, iota, broadcast_in_dim,
/// bitcast_convert, transpose, slice, reverse, roll, pad, dynamic_slice, dynamic_update_slice,
/// concatenate.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/run/kernels/elementwise.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

inline void constant_kernel(const kernel_context& c) {
  fill(c.result.element, c.attrs[0], c.result.shape.elements(), c.out);
}
inline void literal_kernel(const kernel_context& c) {
  with_type(c.result.element, [&]<class T>(std::type_identity<T>) {
    for (std::size_t i = 0; i < c.attrs.size(); ++i)
      c.output<T>()[i] = element_of_bits<T>(c.attrs[i]);
  });
}
/// Copies the bytes unchanged: supported machines are little-endian, so the lowest byte comes
/// first.
inline void bitcast_convert_kernel(const kernel_context& c) {
  std::memcpy(c.out, c.operands[0], static_cast<std::size_t>(c.result.bytes()));
}

inline void iota_kernel(const kernel_context& c) {
  const shape& s = c.result.shape;
  const auto dim = static_cast<int>(c.attrs[0]);
  std::int64_t inner = 1;
  for (int d = dim + 1; d < s.rank; ++d) inner *= s[d];
  with_type(c.result.element, [&]<class T>(std::type_identity<T>) {
    T *out = c.output<T>(), *const end = out + s.elements();
    while (out != end)
      for (std::int64_t i = 0; i < s[dim]; ++i)
        out = std::fill_n(out, inner, convert_element<T>(i));
  });
}

/// Copies an operand: element (i0, i1, ...) of the result is its element `first` + i0 * from[0] +
/// ...
inline void copy_strided(const kernel_context& c, const strides& from, std::int64_t first = 0) {
  const shape& to = c.result.shape;
  if (to.elements() == 0) return;
  const std::int64_t size = size_of(c.result.element);
  box(to, from, strides(to)).copy(size, c.operands[0] + first * size, c.out);
}

inline void broadcast_in_dim_kernel(const kernel_context& c) {
  const shape& from = c.types[0].shape;
  const strides f(from);
  strides by;
  for (int i = 0; i < from.rank; ++i)
    if (from[i] != 1) by[static_cast<int>(c.attrs[at(i)])] = f[i];
  copy_strided(c, by);
}

inline void transpose_kernel(const kernel_context& c) {
  const strides f(c.types[0].shape);
  strides by;
  for (int d = 0; d < c.result.shape.rank; ++d) by[d] = f[static_cast<int>(c.attrs[at(d)])];
  copy_strided(c, by);
}

inline void slice_kernel(const kernel_context& c) {
  const int rank = c.result.shape.rank;
  strides by(c.types[0].shape);
  std::int64_t first = 0;
  for (int d = 0; d < rank; ++d) {
    const op::slice::bounds bounds(c.attrs.data(), c.attrs.size(), rank, d);
    first += bounds.start * by[d];
    by[d] *= bounds.stride;
  }
  copy_strided(c, by, first);
}

inline void reverse_kernel(const kernel_context& c) {
  const shape& s = c.result.shape;
  strides by(s);
  std::int64_t first = 0;
  for (const std::int64_t attr : c.attrs) {
    const auto d = static_cast<int>(attr);
    first += (s[d] - 1) * by[d];
    by[d] = -by[d];
  }
  copy_strided(c, by, first);
}

inline void roll_kernel(const kernel_context& c) {
  const shape& s = c.result.shape;
  if (s.elements() == 0) return;
  const int dim = static_cast<int>(c.attrs[0]);
  const std::int64_t size = size_of(c.result.element);
  const std::int64_t split = s[dim] - op::roll::places(c.attrs[1], s[dim]);
  for (bool back : {false, true}) {  // elements that enter at the front were at the back
    shape part = s;
    part[dim] = back ? split : s[dim] - split;
    std::int64_t from[max_rank] = {}, to[max_rank] = {};
    (back ? to : from)[dim] = back ? s[dim] - split : split;
    if (part[dim] > 0) copy_box(size, part, s, from, c.operands[0], s, to, c.out);
  }
}

inline void pad_kernel(const kernel_context& c) {
  const shape& from = c.types[0].shape;
  const shape& to = c.result.shape;
  if (to.elements() == 0) return;
  const strides f(from), t(to);
  const std::int64_t size = size_of(c.result.element);
  box everywhere, inside;
  everywhere.push_back(to.elements(), 0, 1);
  std::int64_t from_offset = 0, to_offset = 0, copied = 1;
  for (int d = 0; d < to.rank; ++d) {
    const auto at = static_cast<std::size_t>(d), rank = static_cast<std::size_t>(to.rank);
    const std::int64_t low = c.attrs[at], step = c.attrs[2 * rank + at] + 1;
    // Elements i with 0 <= low + i * step < to[d].
    const std::int64_t first = low < 0 ? (-low + step - 1) / step : 0;
    const std::int64_t end = to[d] <= low ? 0 : std::min(from[d], (to[d] - 1 - low) / step + 1);
    const std::int64_t n = std::max<std::int64_t>(end - first, 0);
    inside.push_back(n, f[d], step * t[d]);
    from_offset += first * f[d];
    to_offset += (low + first * step) * t[d];
    copied *= n;
  }
  if (copied < to.elements()) everywhere.copy(size, c.operands[1], c.out);
  if (copied > 0) inside.copy(size, c.operands[0] + from_offset * size, c.out + to_offset * size);
}

/// Reads the start of the box of dynamic_slice or dynamic_update_slice.
inline void read_starts(const kernel_context& c, std::size_t first, const shape& box_shape,
                        std::int64_t* start) {
  const shape& x = c.types[0].shape;
  for (int d = 0; d < x.rank; ++d) {
    const std::size_t operand = first + static_cast<std::size_t>(d);
    start[d] = std::clamp<std::int64_t>(index_at(c.types[operand].element, c.operands[operand], 0),
                                        0, x[d] - box_shape[d]);
  }
}

inline void dynamic_slice_kernel(const kernel_context& c) {
  std::int64_t start[max_rank];
  read_starts(c, 1, c.result.shape, start);
  copy_box(size_of(c.result.element), c.result.shape, c.types[0].shape, start, c.operands[0],
           c.result.shape, nullptr, c.out);
}

inline void dynamic_update_slice_kernel(const kernel_context& c) {
  const shape& update = c.types[1].shape;
  std::int64_t start[max_rank];
  read_starts(c, 2, update, start);
  std::memcpy(c.out, c.operands[0], static_cast<std::size_t>(c.result.bytes()));
  copy_box(size_of(c.result.element), update, update, nullptr, c.operands[1], c.result.shape, start,
           c.out);
}

inline void concatenate_kernel(const kernel_context& c) {
  std::int64_t start[max_rank] = {};
  const auto dim = static_cast<int>(c.attrs[0]);
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    copy_box(size_of(c.result.element), c.types[i].shape, c.types[i].shape, nullptr, c.operands[i],
             c.result.shape, start, c.out);
    start[dim] += c.types[i].shape[dim];
  }
}

}  // namespace partita::run_detail
