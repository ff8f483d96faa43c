/// The kernel of cumsum: running sums, products, ...
#pragma once

#include <partita/op/cumsum.hpp>
#include <partita/run/kernels/computed.hpp>
#include <partita/run/kernels/reduce.hpp>

namespace partita::run_detail {

/// Scans (outer, n, inner) along n in a wider type; each result is rounded once.
template <class f, class T>
void cumsum_middle(const T* x, std::int64_t outer, std::int64_t n, std::int64_t inner, bool reverse,
                   bool exclusive, T* out) {
  constexpr std::int64_t width = 256;
  alignas(alignment) wider<T> total[width];
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t c = 0; c < inner; c += width) {
      const std::int64_t columns = std::min(width, inner - c);
      std::fill_n(total, columns, f::template identity<wider<T>>());
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t at = (o * n + (reverse ? n - 1 - i : i)) * inner + c;
        const T* __restrict from = x + at;
        T* __restrict to = out + at;
        for (std::int64_t j = 0; j < columns; ++j) {
          const wider<T> next = f::one(total[j], static_cast<wider<T>>(from[j]));
          to[j] = static_cast<T>(exclusive ? total[j] : next);
          total[j] = next;
        }
      }
    }
}

/// 16-bit floats are combined in binary32.
inline void cumsum_kernel(const kernel_context& c) {
  const shape& s = c.result.shape;
  const auto dim = static_cast<int>(c.attrs[0]);
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < s.rank; ++d) (d < dim ? outer : inner) *= d == dim ? 1 : s[d];
  const computed_operands wide(c);
  with_computed_type(wide.type, [&]<class T>(std::type_identity<T>) {
    with_combiner<T>(op::cumsum::combiner_of(c.attrs), [&](auto f) {
      cumsum_middle<decltype(f)>(wide.operand<T>(0), outer, s[dim], inner, c.attrs[1] != 0,
                                 c.attrs[2] != 0, wide.output<T>());
    });
  });
  wide.store();
}

}  // namespace partita::run_detail
