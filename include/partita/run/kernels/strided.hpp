/// Copies of boxes between strided layouts: the basis of transpose, slice, broadcast, concatenate,
/// packing and most collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <partita/ir/shape.hpp>

namespace partita::run_detail {

/// Calls `f(std::type_identity<T>{})` for the unsigned integer T of `bytes` bytes.
template <class F>
constexpr decltype(auto) with_bits(std::int64_t bytes, F&& f) {
  if (bytes == 1) return f(std::type_identity<std::uint8_t>{});
  if (bytes == 2) return f(std::type_identity<std::uint16_t>{});
  if (bytes == 4) return f(std::type_identity<std::uint32_t>{});
  return f(std::type_identity<std::uint64_t>{});
}

/// Row-major strides of a shape, in elements.
struct strides {
  std::int64_t at[max_rank] = {};
  constexpr strides() = default;
  constexpr explicit strides(const shape& s) {
    std::int64_t n = 1;
    for (int d = s.rank; d-- > 0; n *= s[d]) at[d] = n;
  }
  constexpr std::int64_t operator[](int d) const { return at[d]; }
  constexpr std::int64_t& operator[](int d) { return at[d]; }
};

/// A box of elements with one stride for each dimension on both sides.
class box {
 public:
  constexpr box() = default;
  constexpr box(const shape& extents, const strides& from, const strides& to) {
    for (int d = 0; d < extents.rank; ++d) push_back(extents[d], from[d], to[d]);
  }
  /// Adds a dimension, major to minor; dimensions that are contiguous on both sides are merged.
  constexpr void push_back(std::int64_t extent, std::int64_t from, std::int64_t to) {
    if (extent == 1) return;
    if (rank_ > 0 && from_[rank_ - 1] == from * extent && to_[rank_ - 1] == to * extent) {
      extent_[rank_ - 1] *= extent;
      from_[rank_ - 1] = from;
      to_[rank_ - 1] = to;
      return;
    }
    extent_[rank_] = extent;
    from_[rank_] = from;
    to_[rank_] = to;
    ++rank_;
  }
  /// Copies the box; `size` is the size of an element in bytes.
  void copy(std::int64_t size, const void* from, void* to) const {
    with_bits(size, [&]<class T>(std::type_identity<T>) {
      run(static_cast<const T*>(from), static_cast<T*>(to), 0);
    });
  }
  /// Returns the number of elements if they are contiguous on both sides, else -1.
  std::int64_t contiguous() const {
    if (rank_ == 0) return 1;
    return rank_ == 1 && from_[0] == 1 && to_[0] == 1 ? extent_[0] : -1;
  }
  /// Calls f(from, to, n, from stride, to stride) for every row of the box.
  template <class T, class F>
  void for_each_row(const T* from, T* to, F f, int d = 0) const {
    if (d == rank_) return f(from, to, std::int64_t{1}, std::int64_t{1}, std::int64_t{1});
    if (d + 1 == rank_) return f(from, to, extent_[d], from_[d], to_[d]);
    for (std::int64_t i = 0; i < extent_[d]; ++i)
      for_each_row(from + i * from_[d], to + i * to_[d], f, d + 1);
  }

 private:
  template <class T>
  void run(const T* from, T* to, int d) const {
    if (d == rank_) {
      *to = *from;
      return;
    }
    if (d + 1 == rank_) return row(from, to, extent_[d], from_[d], to_[d]);
    if (d + 2 == rank_ && from_[d] == 1 && to_[d + 1] == 1) return transpose(from, to, d);
    for (std::int64_t i = 0; i < extent_[d]; ++i) run(from + i * from_[d], to + i * to_[d], d + 1);
  }
  template <class T>
  static void row(const T* from, T* to, std::int64_t n, std::int64_t f, std::int64_t t) {
    if (f == 1 && t == 1) {
      if (n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
    } else if (f == 0 && t == 1) {
      std::fill_n(to, std::max<std::int64_t>(n, 0), n > 0 ? *from : T{});
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i * t] = from[i * f];
    }
  }
  /// Copies a square of 4 by 4 elements in vectors, which compilers do not make of loops.
  template <class T>
  static void turn(const T* from, std::int64_t f, T* to, std::int64_t t) {
    typedef T four __attribute__((vector_size(4 * sizeof(T))));
    four x[4];
    for (int k = 0; k < 4; ++k) std::memcpy(&x[k], from + k * f, sizeof(four));
    const four a = __builtin_shufflevector(x[0], x[2], 0, 4, 1, 5),
               b = __builtin_shufflevector(x[1], x[3], 0, 4, 1, 5),
               c = __builtin_shufflevector(x[0], x[2], 2, 6, 3, 7),
               d = __builtin_shufflevector(x[1], x[3], 2, 6, 3, 7);
    x[0] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    x[1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    x[2] = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    x[3] = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    for (int k = 0; k < 4; ++k) std::memcpy(to + k * t, &x[k], sizeof(four));
  }
  /// Copies the last two dimensions in tiles that fit the first-level cache.
  template <class T>
  void transpose(const T* from, T* to, int d) const {
    constexpr std::int64_t tile = 16;
    const std::int64_t rows = extent_[d], cols = extent_[d + 1], f = from_[d + 1], t = to_[d];
    for (std::int64_t r = 0; r < rows; r += tile)
      for (std::int64_t c = 0; c < cols; c += tile)
        if (r + tile <= rows && c + tile <= cols) {
          for (std::int64_t i = r; i < r + tile; i += 4)
            for (std::int64_t j = c; j < c + tile; j += 4)
              turn(from + i + j * f, f, to + i * t + j, t);
        } else {
          for (std::int64_t i = r; i < std::min(r + tile, rows); ++i)
            for (std::int64_t j = c; j < std::min(c + tile, cols); ++j)
              to[i * t + j] = from[i + j * f];
        }
  }

  int rank_ = 0;
  std::int64_t extent_[2 * max_rank] = {}, from_[2 * max_rank] = {}, to_[2 * max_rank] = {};
};

/// Copies the box of the given extents at `from_start` of one tensor to `to_start` of another.
inline void copy_box(std::int64_t size, const shape& extents, const shape& from_shape,
                     const std::int64_t* from_start, const std::byte* from, const shape& to_shape,
                     const std::int64_t* to_start, std::byte* to) {
  if (extents.elements() == 0) return;
  const strides f(from_shape), t(to_shape);
  for (int d = 0; d < extents.rank; ++d) {
    if (from_start) from += from_start[d] * f[d] * size;
    if (to_start) to += to_start[d] * t[d] * size;
  }
  box(extents, f, t).copy(size, from, to);
}

}  // namespace partita::run_detail
