/// reduce: sums, maxima and minima over dimensions.
#pragma once

#include <algorithm>
#include <limits>

#include <partita/op/registry.hpp>
#include <partita/run/kernels/elementwise.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::detail {

/// x (combined with) y.
template <combiner C>
struct combine {
  template <class T>
  static T one(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      if constexpr (C == combiner::add) return x + y;
      if constexpr (C == combiner::add) return x + y;
    }
    if constexpr (C == combiner::max)
      return maximum_lanes::one(x, y);
    else if constexpr (C == combiner::min)
      return minimum_lanes::one(x, y);
    else if constexpr (std::is_floating_point_v<T>)
      return x + y;
    else
      return add_lanes::one(x, y);
  }
  template <class T>
  static constexpr T identity() {
    using limits = std::numeric_limits<T>;
    if constexpr (C == combiner::max)
      return limits::has_infinity ? -limits::infinity() : limits::lowest();
    else if constexpr (C == combiner::min)
      return limits::has_infinity ? limits::infinity() : limits::max();
    else
      return T(0);
  }
};

/// Elements that are summed in the element type before they go to a wider accumulator.
inline constexpr std::int64_t reduce_chunk = 1024;

/// Where partial sums go: binary64 for binary32.
template <class T>
using wider = std::conditional_t<std::is_same_v<T, float>, double, T>;

/// A contiguous row, in an order that depends on its length only.
template <combiner C, class T>
T reduce_row(const T* x, std::int64_t n) {
  using f = combine<C>;
  constexpr std::int64_t width = 2 * lanes;
  wider<T> total = f::template identity<wider<T>>();
  for (std::int64_t begin = 0; begin < n; begin += reduce_chunk) {
    const std::int64_t end = std::min(n, begin + reduce_chunk);
    std::int64_t i = begin;
    T part = f::template identity<T>();
    if (end - begin >= width) {
      T sum[width];
      std::copy_n(x + i, width, sum);
      for (i += width; i + width <= end; i += width) {
        for (std::int64_t j = 0; j < width; ++j) sum[j] = f::one(sum[j], x[i + j]);
      }
      for (std::int64_t half = width / 2; half > 0; half /= 2)
        for (std::int64_t j = 0; j < half; ++j) sum[j] = f::one(sum[j], sum[j + half]);
      part = sum[0];
    }
    for (; i < end; ++i) part = f::one(part, x[i]);
    total = f::one(total, static_cast<wider<T>>(part));
  }
  return static_cast<T>(total);
}

/// (rows, columns) -> (columns), column tile by column tile.
template <combiner C, class T>
void reduce_columns(const T* x, std::int64_t rows, std::int64_t columns, T* out) {
  using f = combine<C>;
  constexpr std::int64_t width = 256, height = 32;
  alignas(alignment) T part[width];
  alignas(alignment) wider<T> total[width];
  for (std::int64_t c = 0; c < columns; c += width) {
    const std::int64_t n = std::min(width, columns - c);
    for (std::int64_t j = 0; j < n; ++j) total[j] = f::template identity<wider<T>>();
    for (std::int64_t r = 0; r < rows; r += height) {
      const std::int64_t last = std::min(rows, r + height);
      std::copy_n(x + r * columns + c, n, part);
      for (std::int64_t k = r + 1; k < last; ++k) {
        const T* __restrict row = x + k * columns + c;
        for (std::int64_t j = 0; j < n; ++j) part[j] = f::one(part[j], row[j]);
      }
      for (std::int64_t j = 0; j < n; ++j)
        total[j] = f::one(total[j], static_cast<wider<T>>(part[j]));
    }
    for (std::int64_t j = 0; j < n; ++j) out[c + j] = static_cast<T>(total[j]);
  }
}

/// (outer, reduced, inner) -> (outer, inner).
template <combiner C, class T>
void reduce_middle(const T* x, std::int64_t outer, std::int64_t reduced, std::int64_t inner,
                   T* out) {
  for (std::int64_t o = 0; o < outer; ++o) {
    const T* from = x + o * reduced * inner;
    if (inner == 1)
      out[o] = reduce_row<C>(from, reduced);
    else
      reduce_columns<C>(from, reduced, inner, out + o * inner);
  }
}
template <class T>
void reduce_any(combiner c, const std::byte* x, std::int64_t outer, std::int64_t reduced,
                std::int64_t inner, std::byte* out) {
  const auto* from = reinterpret_cast<const T*>(x);
  auto* to = reinterpret_cast<T*>(out);
  if (c == combiner::max)
    reduce_middle<combiner::max>(from, outer, reduced, inner, to);
  else if (c == combiner::min)
    reduce_middle<combiner::min>(from, outer, reduced, inner, to);
  else
    reduce_middle<combiner::add>(from, outer, reduced, inner, to);
}

/// 16-bit floats are combined in binary32 and rounded once.
inline void reduce_kernel(const kernel_context& c) {
  const auto combiner_of = static_cast<combiner>(c.attrs[0]);
  const shape& from = c.types[0].shape;
  const auto is_reduced = [&](int d) {
    return op::reduce::reduced(c.attrs.data(), static_cast<int>(c.attrs.size()), d);
  };
  // Runs of kept and reduced dimensions; kept, reduced, kept needs no copy.
  std::int64_t outer = 1, reduced = 1, inner = 1;
  int state = 0;
  bool direct = true;
  for (int d = 0; d < from.rank; ++d) {
    if (from[d] == 1) continue;
    if (is_reduced(d)) {
      if (state == 2) direct = false;
      state = 1;
      reduced *= from[d];
    } else if (state == 0) {
      outer *= from[d];
    } else {
      state = 2;
      inner *= from[d];
    }
  }
  const dtype element = c.types[0].element;
  const std::byte* x = c.operands[0];
  if (!direct) {
    const strides s(from);
    box b;
    shape packed;
    for (int pass = 0; pass < 2; ++pass)
      for (int d = 0; d < from.rank; ++d)
        if (is_reduced(d) == (pass == 1)) packed.push_back(from[d]);
    const strides t(packed);
    int at = 0;
    for (int pass = 0; pass < 2; ++pass)
      for (int d = 0; d < from.rank; ++d)
        if (is_reduced(d) == (pass == 1)) b.push_back(from[d], s[d], t[at++]);
    std::byte* copy = c.memory.take(padded_bytes(c.types[0]));
    if (from.elements() > 0) b.copy(size_of(element), x, copy);
    x = copy;
    outer *= inner;
    inner = 1;
  }
  std::byte* out = c.out;
  if (is_half(element)) {
    std::byte* wide = c.memory.take(padded_bytes({dtype::f32, from}));
    const void* in[] = {x};
    widen_function(element)(round_up(from.elements(), lanes), in, wide);
    x = wide;
    out = c.memory.take(padded_bytes({dtype::f32, c.result.shape}));
  }
  switch (computed(element)) {
    case dtype::f32:
      reduce_any<float>(combiner_of, x, outer, reduced, inner, out);
      break;
    case dtype::f64:
      reduce_any<double>(combiner_of, x, outer, reduced, inner, out);
      break;
    case dtype::i32:
      reduce_any<std::int32_t>(combiner_of, x, outer, reduced, inner, out);
      break;
    case dtype::i64:
      reduce_any<std::int64_t>(combiner_of, x, outer, reduced, inner, out);
      break;
    default:
      reduce_any<std::uint8_t>(combiner_of, x, outer, reduced, inner, out);
      break;
  }
  if (is_half(element)) {
    const void* in[] = {out};
    narrow_function(element)(round_up(c.result.shape.elements(), lanes), in, c.out);
  }
}

}  // namespace partita::detail
