/// reduce_window, select_and_scatter and select_and_gather.
#pragma once

#include <vector>

#include <partita/run/kernels/computed.hpp>
#include <partita/run/kernels/reduce.hpp>

namespace partita::run_detail {

/// Reduces (outer, n, inner) -> (outer, positions, inner), for one dimension with its window.
template <class f, class T>
void reduce_window_dim(const T* x, std::int64_t outer, std::int64_t n, std::int64_t inner,
                       const window_dim& w, T* out) {
  const std::int64_t positions = w.positions(n);
  for (std::int64_t o = 0; o < outer; ++o, x += n * inner)
    for (std::int64_t p = 0; p < positions; ++p, out += inner) {
      T* __restrict to = out;
      std::fill_n(to, inner, f::template identity<T>());
      for (std::int64_t k = 0; k < w.size; ++k) {
        const std::int64_t i = w.element(p, k, n);
        if (i < 0) continue;
        const T* __restrict from = x + i * inner;
        for (std::int64_t j = 0; j < inner; ++j) to[j] = f::one(to[j], from[j]);
      }
    }
}

/// Reduces dimension by dimension (a window is the window of its rows, then of its columns, ...),
/// so the cost is the sum of the window's sizes. Even a sum of one element begins with 0: that of
/// -0 is 0. 16-bit floats are combined in binary32 and rounded once.
inline void reduce_window_kernel(const kernel_context& c) {
  if (c.result.shape.elements() == 0) return;
  const op::windows w(c.attrs.data() + 1, c.result.shape.rank);
  const auto combine_by = static_cast<combiner>(c.attrs[0]);
  const computed_operands wide(c);
  int last = 0;  // the last dimension that the window reduces
  for (int d = 0; d < w.rank; ++d)
    if (!w.at[d].trivial()) last = d;
  with_computed_type(wide.type, [&]<class T>(std::type_identity<T>) {
    const T* x = wide.operand<T>(0);
    shape now = c.types[0].shape;
    if (w.rank == 0) std::copy_n(x, 1, wide.output<T>());
    for (int d = 0; d <= last && d < w.rank; ++d) {
      if (w.at[d].trivial() && d < last) continue;
      std::int64_t outer = 1, inner = 1;
      for (int e = 0; e < now.rank; ++e) (e < d ? outer : inner) *= e == d ? 1 : now[e];
      const std::int64_t n = now[d];
      now[d] = w.at[d].positions(n);
      T* out = d == last ? wide.output<T>()
                         : reinterpret_cast<T*>(c.memory.take(padded_bytes({wide.type, now})));
      with_combiner<T>(combine_by, [&](auto f) {
        reduce_window_dim<decltype(f)>(x, outer, n, inner, w.at[d], out);
      });
      x = out;
    }
  });
  wide.store();
}

/// Selects tap `k` in lanes where `x` replaces the selected element.
template <class T>
void select_lanes(std::int64_t n, const T* __restrict x, bool greatest, std::int32_t k,
                  T* __restrict best, std::int32_t* __restrict selected) {
  for (std::int64_t j = 0; j < n; ++j) {
    const bool stays = greatest ? best[j] >= x[j] : best[j] <= x[j];
    best[j] = stays ? best[j] : x[j];
    selected[j] = stays ? selected[j] : k;
  }
}

/// Calls `f(position, element)` with the flat indices of each window and of its selected element,
/// or -1. The last dimensions, if windows do not reduce them, form rows whose windows are processed
/// together.
template <class T, class F>
void for_selected(const T* x, const shape& from, const shape& to, const op::windows& w,
                  bool greatest, F f) {
  if (to.elements() == 0) return;
  int sliding = w.rank;
  std::int64_t inner = 1;
  while (sliding > 0 && w.at[sliding - 1].trivial()) inner *= from[--sliding];
  std::int64_t positions = 1, taps = 1, stride[max_rank] = {}, o[max_rank] = {}, n = inner;
  for (int d = sliding; d-- > 0; n *= from[d]) stride[d] = n;
  for (int d = 0; d < sliding; ++d) positions *= to[d], taps *= w.at[d].size;
  std::vector<T> best_lanes(static_cast<std::size_t>(inner));
  std::vector<std::int32_t> selected(static_cast<std::size_t>(inner));
  T* best = best_lanes.data();
  std::vector<std::int64_t> met;  // the offsets of the taps that are in bounds
  const auto next = [&](std::int64_t* at, auto extent) {
    for (int d = sliding; d-- > 0 && ++at[d] == extent(d);) at[d] = 0;
  };
  for (std::int64_t p = 0; p < positions; ++p) {
    met.clear();
    std::int64_t tap[max_rank] = {};
    for (std::int64_t k = 0; k < taps; ++k) {
      std::int64_t at = 0;
      for (int d = 0; d < sliding && at >= 0; ++d) {
        const std::int64_t i = w.at[d].element(o[d], tap[d], from[d]);
        at = i < 0 ? -1 : at + i * stride[d];
      }
      next(tap, [&](int d) { return w.at[d].size; });
      if (at < 0) continue;
      if (met.empty()) {
        std::copy_n(x + at, inner, best);
        std::fill(selected.begin(), selected.end(), 0);
      } else {
        select_lanes(inner, x + at, greatest, static_cast<std::int32_t>(met.size()), best,
                     selected.data());
      }
      met.push_back(at);
    }
    for (std::int64_t j = 0; j < inner; ++j) {
      const auto k = static_cast<std::size_t>(selected[static_cast<std::size_t>(j)]);
      f(p * inner + j, met.empty() ? -1 : met[k] + j);
    }
    next(o, [&](int d) { return to[d]; });
  }
}

/// Adds in the order of the windows; 16-bit floats are summed in binary32 and rounded once.
inline void select_and_scatter_kernel(const kernel_context& c) {
  const op::windows w(c.attrs.data() + 1, c.result.shape.rank);
  const computed_operands wide(c);
  with_number_type(wide.type, [&]<class T>(std::type_identity<T>) {
    const T* source = wide.operand<T>(1);
    T* out = wide.output<T>();
    std::fill_n(out, c.result.shape.elements(), T(0));
    for_selected(wide.operand<T>(0), c.types[0].shape, c.types[1].shape, w, c.attrs[0] == 0,
                 [&](std::int64_t position, std::int64_t element) {
                   if (element >= 0)
                     out[element] = combine<combiner::add>::one(out[element], source[position]);
                 });
  });
  wide.store();
}

inline void select_and_gather_kernel(const kernel_context& c) {
  const op::windows w(c.attrs.data() + 1, c.result.shape.rank);
  const computed_operands wide(c);
  with_number_type(wide.type, [&]<class T>(std::type_identity<T>) {
    const T* values = wide.operand<T>(1);
    T* out = wide.output<T>();
    for_selected(wide.operand<T>(0), c.types[0].shape, c.result.shape, w, c.attrs[0] == 0,
                 [&](std::int64_t position, std::int64_t element) {
                   out[position] = element >= 0 ? values[element] : T(0);
                 });
  });
  wide.store();
}

}  // namespace partita::run_detail
