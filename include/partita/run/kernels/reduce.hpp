/// reduce: sums, products, maxima, ... over dimensions.
#pragma once

#include <algorithm>

#include <partita/op/registry.hpp>
#include <partita/run/kernels/computed.hpp>
#include <partita/run/kernels/reduce_rows.hpp>
#include <partita/run/kernels/sort.hpp>

namespace partita::run_detail {

/// An operand of reduce as (outer, reduced, inner), copied if it is stored in another order.
class reduction : public reduction_sizes {
 public:
  explicit reduction(const kernel_context& c)
      : reduction_sizes(c.types[0].shape, c.attrs), c_(c), from_(c.types[0].shape) {
    if (!direct) outer *= inner, inner = 1;
  }

  const std::byte* operand(std::size_t i) const {
    if (direct) return c_.operands[i];
    int order[max_rank], at = 0;
    for (const bool reduced_ones : {false, true})
      for (int d = 0; d < from_.rank; ++d)
        if (is_reduced(c_.attrs, d) == reduced_ones) order[at++] = d;
    return in_order(c_.types[i].element, from_, order, nullptr, c_.operands[i], c_.memory);
  }

 private:
  const kernel_context& c_;
  const shape& from_;
};

/// Finds the position of the extreme element along the reduced dimensions, for each (outer, inner).
template <class T, class Prefer>
void find_extremes(const reduction& r, const T* x, const Prefer& prefer, std::int64_t* best) {
  std::fill_n(best, r.outer * r.inner, 0);
  for (std::int64_t o = 0; o < r.outer; ++o)
    for (std::int64_t k = 1; k < r.reduced; ++k)
      for (std::int64_t i = 0; i < r.inner; ++i) {
        std::int64_t& b = best[o * r.inner + i];
        const std::int64_t begin = o * r.reduced * r.inner + i;
        if (prefer(x, begin + k * r.inner, begin + b * r.inner)) b = k;
      }
}

/// The kernel of argmax and argmin.
inline void extreme_kernel(const kernel_context& c) {
  const std::int64_t count = c.result.shape.elements();
  if (count == 0) return;
  const reduction r(c);
  const bool greatest = c.attrs[0] == static_cast<int>(ops::extreme::argmax);
  const dtype element = c.types[0].element, position = c.types[1].element;
  if (r.reduced == 0) {
    std::memset(c.outs[1], 0, static_cast<std::size_t>(count * size_of(position)));
    with_type(element, [&]<class T>(std::type_identity<T>) {
      using identity = std::conditional_t<std::is_integral_v<T>, T, float>;
      std::fill_n(c.output<T>(), count,
                  T(greatest ? combine<combiner::max>::identity<identity>()
                             : combine<combiner::min>::identity<identity>()));
    });
    return;
  }
  const std::byte *values = r.operand(0), *positions = r.operand(1);
  auto* best = reinterpret_cast<std::int64_t*>(
      c.memory.take(count * static_cast<std::int64_t>(sizeof(std::int64_t))));
  const order_function order = order_function_of(position);
  with_type(element, [&]<class T>(std::type_identity<T>) {
    const auto is_nan = [](T v) { return !std::is_integral_v<T> && wide(v) != wide(v); };
    find_extremes(
        r, reinterpret_cast<const T*>(values),
        [&](const T* x, std::int64_t i, std::int64_t j) {
          if (is_nan(x[i]) != is_nan(x[j])) return is_nan(x[i]);
          const int o = order_of(x[i], x[j]);
          return o != 0 ? (o > 0) == greatest : order(positions, i, j) < 0;
        },
        best);
  });
  const auto copy_chosen = [&](const std::byte* from, dtype t, std::byte* to) {
    const auto size = static_cast<std::size_t>(size_of(t));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = (i / r.inner * r.reduced + best[i]) * r.inner + i % r.inner;
      std::memcpy(to + static_cast<std::size_t>(i) * size,
                  from + static_cast<std::size_t>(at) * size, size);
    }
  };
  copy_chosen(values, element, c.outs[0]);
  copy_chosen(positions, position, c.outs[1]);
}

/// 16-bit floats are combined in binary32 and rounded once.
inline void reduce_kernel(const kernel_context& c) {
  if (op::reduce::with_position(c.attrs)) return extreme_kernel(c);
  const reduction r(c);
  const shape& from = c.types[0].shape;
  const dtype element = c.types[0].element;
  const std::byte* x = widened(element, r.operand(0), from.elements(), c.memory);
  std::byte* out = c.out;
  if (is_half(element)) out = c.memory.take(padded_bytes({dtype::f32, c.result.shape}));
  with_computed_type(element, [&]<class T>(std::type_identity<T>) {
    with_combiner<T>(static_cast<combiner>(c.attrs[0]), [&](auto f) {
      reduce_middle<decltype(f)>(reinterpret_cast<const T*>(x), r.outer, r.reduced, r.inner,
                                 reinterpret_cast<T*>(out));
    });
  });
  if (is_half(element)) narrow(element, out, c.result.shape.elements(), c.out);
}

}  // namespace partita::run_detail
