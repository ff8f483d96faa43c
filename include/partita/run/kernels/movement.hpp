/// Kernels that move or make elements: constant, iota, broadcast_in_dim, transpose, slice,
/// concatenate, gather, scatter_add.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/run/kernels/elementwise.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::detail {

inline void copy_kernel(const kernel_context& c) {
  std::memcpy(c.out, c.operands[0], static_cast<std::size_t>(c.result.bytes()));
}

inline void constant_kernel(const kernel_context& c) {
  fill(c.result.element, c.attrs[0], c.result.shape.elements(), c.out);
}

inline void iota_kernel(const kernel_context& c) {
  const shape& s = c.result.shape;
  const auto dim = static_cast<int>(c.attrs[0]);
  std::int64_t inner = 1;
  for (int d = dim + 1; d < s.rank; ++d) inner *= s[d];
  with_type(c.result.element, [&]<class T>(std::type_identity<T>) {
    const std::int64_t n = s.elements();
    for (std::int64_t i = 0; i < n; ++i)
      c.output<T>()[i] = convert_element<T>(inner > 0 ? i / inner % s[dim] : 0);
  });
}

inline void broadcast_kernel(const kernel_context& c) {
  const shape& from = c.types[0].shape;
  const shape& to = c.result.shape;
  if (to.elements() == 0) return;
  const strides f(from), t(to);
  std::int64_t from_stride[max_rank] = {};
  for (int i = 0; i < from.rank; ++i)
    if (from[i] != 1) from_stride[c.attrs[static_cast<std::size_t>(i)]] = f[i];
  box b;
  for (int d = 0; d < to.rank; ++d) b.push_back(to[d], from_stride[d], t[d]);
  b.copy(size_of(c.result.element), c.operands[0], c.out);
}

inline void transpose_kernel(const kernel_context& c) {
  const shape& to = c.result.shape;
  if (to.elements() == 0) return;
  const strides f(c.types[0].shape), t(to);
  box b;
  for (int d = 0; d < to.rank; ++d)
    b.push_back(to[d], f[static_cast<int>(c.attrs[static_cast<std::size_t>(d)])], t[d]);
  b.copy(size_of(c.result.element), c.operands[0], c.out);
}

inline void slice_kernel(const kernel_context& c) {
  copy_box(size_of(c.result.element), c.result.shape, c.types[0].shape, c.attrs.data(),
           c.operands[0], c.result.shape, nullptr, c.out);
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

inline std::int64_t index_at(dtype t, const std::byte* indices, std::int64_t i) {
  if (t == dtype::i32) return reinterpret_cast<const std::int32_t*>(indices)[i];
  if (t == dtype::i64) return reinterpret_cast<const std::int64_t*>(indices)[i];
  return reinterpret_cast<const std::uint8_t*>(indices)[i];
}

/// An empty table has no row to clamp to: it gives zeros.
inline void gather_kernel(const kernel_context& c) {
  const std::int64_t rows = c.types[0].shape[0], count = c.types[1].shape.elements();
  std::int64_t row = size_of(c.result.element);
  for (int d = 1; d < c.types[0].shape.rank; ++d) row *= c.types[0].shape[d];
  if (rows == 0) std::memset(c.out, 0, static_cast<std::size_t>(c.result.bytes()));
  for (std::int64_t i = 0; rows > 0 && i < count; ++i) {
    const auto r =
        std::clamp<std::int64_t>(index_at(c.types[1].element, c.operands[1], i), 0, rows - 1);
    std::memcpy(c.out + i * row, c.operands[0] + r * row, static_cast<std::size_t>(row));
  }
}

template <class T>
void scatter_rows(const kernel_context& c, const std::byte* updates, std::byte* out,
                  std::int64_t row) {
  const std::int64_t rows = c.result.shape[0], count = c.types[0].shape.elements();
  std::fill_n(reinterpret_cast<T*>(out), c.result.shape.elements(), T(0));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t r = index_at(c.types[0].element, c.operands[0], i);
    if (r < 0 || r >= rows) continue;
    const T* __restrict from = reinterpret_cast<const T*>(updates) + i * row;
    T* __restrict to = reinterpret_cast<T*>(out) + r * row;
    for (std::int64_t j = 0; j < row; ++j) {
      if constexpr (std::is_floating_point_v<T>)
        to[j] += from[j];
      else
        to[j] = add_lanes::one(to[j], from[j]);
    }
  }
}

/// In the order of the indices; 16-bit floats are summed in binary32 and rounded once.
inline void scatter_add_kernel(const kernel_context& c) {
  std::int64_t row = 1;
  for (int d = 1; d < c.result.shape.rank; ++d) row *= c.result.shape[d];
  const dtype t = c.result.element;
  if (is_half(t)) {
    std::byte* wide = c.memory.take(padded_bytes({dtype::f32, c.types[1].shape}));
    std::byte* sum = c.memory.take(padded_bytes({dtype::f32, c.result.shape}));
    const void* in[] = {c.operands[1]};
    widen_function(t)(round_up(c.types[1].shape.elements(), lanes), in, wide);
    scatter_rows<float>(c, wide, sum, row);
    in[0] = sum;
    return narrow_function(t)(round_up(c.result.shape.elements(), lanes), in, c.out);
  }
  switch (t) {
    case dtype::f32:
      return scatter_rows<float>(c, c.operands[1], c.out, row);
    case dtype::f64:
      return scatter_rows<double>(c, c.operands[1], c.out, row);
    case dtype::i32:
      return scatter_rows<std::int32_t>(c, c.operands[1], c.out, row);
    case dtype::i64:
      return scatter_rows<std::int64_t>(c, c.operands[1], c.out, row);
    default:
      return scatter_rows<std::uint8_t>(c, c.operands[1], c.out, row);
  }
}

}  // namespace partita::detail
