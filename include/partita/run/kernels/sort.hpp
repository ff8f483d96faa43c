/// Kernels of sort and top_k.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <vector>

#include <partita/op/registry.hpp>
#include <partita/op/sort.hpp>
#include <partita/run/kernels/context.hpp>

namespace partita::run_detail {

template <class T>
double wide(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return v;
  else
    return static_cast<double>(float(v));
}

/// Returns a negative, zero or positive number if a comes before, with or after b; NaN comes last.
template <class T>
int order_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b ? -1 : b < a ? 1 : 0;
  } else {
    const auto x = wide(a), y = wide(b);
    if (x != x || y != y) return (x != x) - (y != y);
    return x < y ? -1 : y < x ? 1 : 0;
  }
}

/// Does the same in the total order of IEEE 754: -NaN, -inf, ..., -0, +0, ..., inf, NaN. The bits
/// of a float without its sign are in that order.
template <class T>
int total_order_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return order_of(a, b);
  } else {
    using bits = std::conditional_t<sizeof(T) == 2, std::int16_t,
                                    std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>>;
    const auto key = [](T v) {
      const auto b = std::bit_cast<bits>(v);
      return b < 0 ? static_cast<bits>(b ^ std::numeric_limits<bits>::max()) : b;
    };
    return order_of(key(a), key(b));
  }
}

using order_function = int (*)(const std::byte* line, std::int64_t i, std::int64_t j);
template <class T, bool Total>
int order_in_line(const std::byte* line, std::int64_t i, std::int64_t j) {
  const auto* x = reinterpret_cast<const T*>(line);
  return Total ? total_order_of(x[i], x[j]) : order_of(x[i], x[j]);
}
template <bool Total = false>
order_function order_function_of(dtype t) {
  return with_type(t == dtype::boolean ? dtype::u8 : t, []<class T>(std::type_identity<T>) {
    return static_cast<order_function>(&order_in_line<T, Total>);
  });
}

/// The lines along `dim`: their number, and where each begins.
struct line_walk {
  std::int64_t length, stride, inner, count;
  line_walk(const shape& s, int dim) : length(s[dim]), stride(1), inner(1), count(1) {
    for (int d = dim + 1; d < s.rank; ++d) stride *= s[d];
    inner = stride;
    for (int d = 0; d < s.rank; ++d)
      if (d != dim) count *= s[d];
  }
  std::int64_t begin(std::int64_t line) const {
    return line / inner * inner * length + line % inner;
  }
};

inline void sort_kernel(const kernel_context& c) {
  const line_walk lines(c.result.shape, static_cast<int>(c.attrs[0]));
  if (c.result.shape.elements() == 0) return;
  const auto keys = static_cast<std::size_t>(c.attrs[1]);
  const int sign = c.attrs[2] != 0 ? -1 : 1;
  const std::size_t n = c.operands.size();
  std::vector<std::int64_t> position(static_cast<std::size_t>(lines.length));
  std::vector<order_function> order;
  std::vector<std::vector<std::byte>> line(n);  // of each operand, contiguous
  for (std::size_t i = 0; i < n; ++i) {
    line[i].resize(static_cast<std::size_t>(lines.length * size_of(c.types[i].element)));
    order.push_back(order_function_of(c.types[i].element));
  }
  for (std::int64_t l = 0; l < lines.count; ++l) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto size = static_cast<std::size_t>(size_of(c.types[i].element));
      for (std::int64_t k = 0; k < lines.length; ++k)
        std::memcpy(
            line[i].data() + static_cast<std::size_t>(k) * size,
            c.operands[i] + static_cast<std::size_t>(lines.begin(l) + k * lines.stride) * size,
            size);
    }
    std::iota(position.begin(), position.end(), std::int64_t{0});
    std::sort(position.begin(), position.end(), [&](std::int64_t a, std::int64_t b) {
      for (std::size_t i = 0; i < keys; ++i) {
        const int o = sign * order[i](line[i].data(), a, b);
        if (o != 0) return o < 0;
      }
      return a < b;  // equal keys keep their order
    });
    for (std::size_t i = 0; i < n; ++i) {
      const auto size = static_cast<std::size_t>(size_of(c.types[i].element));
      for (std::int64_t k = 0; k < lines.length; ++k)
        std::memcpy(c.outs[i] + static_cast<std::size_t>(lines.begin(l) + k * lines.stride) * size,
                    line[i].data() + static_cast<std::size_t>(position[at(k)]) * size, size);
    }
  }
}

inline void top_k_kernel(const kernel_context& c) {
  const shape& from = c.types[0].shape;
  const std::int64_t n = from[from.rank - 1], k = c.attrs[0];
  if (c.result.shape.elements() == 0) return;
  const std::int64_t sizes[] = {size_of(c.types[0].element), size_of(c.types[1].element)};
  const order_function value_order = order_function_of<true>(c.types[0].element);
  const order_function position_order = order_function_of(c.types[1].element);
  std::vector<std::int64_t> place(static_cast<std::size_t>(n));
  for (std::int64_t l = 0; l < from.elements() / n; ++l) {
    const std::byte* const values = c.operands[0] + l * n * sizes[0];
    const std::byte* const positions = c.operands[1] + l * n * sizes[1];
    std::iota(place.begin(), place.end(), std::int64_t{0});
    std::partial_sort(place.begin(), place.begin() + k, place.end(),
                      [&](std::int64_t i, std::int64_t j) {
                        if (const int o = value_order(values, i, j); o != 0) return o > 0;
                        const int o = position_order(positions, i, j);
                        return o != 0 ? o < 0 : i < j;
                      });
    for (std::int64_t i = 0; i < k; ++i)
      for (std::size_t r = 0; r < 2; ++r)
        std::memcpy(c.outs[r] + (l * k + i) * sizes[r],
                    (r == 0 ? values : positions) + place[at(i)] * sizes[r],
                    static_cast<std::size_t>(sizes[r]));
  }
}

}  // namespace partita::run_detail
