/// The ops as functions of typed tensors: what models are written in.
///
/// Every function checks shapes and element types where the model is written, by the shape rule of
/// its op (see op/ for shapes, errors and tile maps).
#pragma once

#include <limits>
#include <string_view>

#include <partita/dsl/apply.hpp>
#include <partita/dsl/order.hpp>
#include <partita/dsl/linalg.hpp>
#include <partita/dsl/elementwise.hpp>
#include <partita/dsl/random.hpp>
#include <partita/dsl/gather.hpp>
#include <partita/dsl/movement.hpp>

namespace partita {

namespace detail {
/// 1 / n, NaN for 0: what a sum over n elements is multiplied with to give their mean.
constexpr double reciprocal(std::int64_t n) {
  return n == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0 / static_cast<double>(n);
}
}  // namespace detail

/// The value, which passes no cotangent on.
template <Tensor X>
constexpr auto stop_gradient(const X& x) {
  return detail::apply(
      [](builder& b, const value_id* v, const shape&) { return ops::stop_gradient(b, v[0]); }, x);
}

/// Gives a value a name that tactics can refer to. The name must be unique in the program.
template <Tensor X>
constexpr X tag(std::string_view name, const X& x) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    if (x.context() == nullptr) return x;
    return X(x.context(), ops::tag(*x.context(), name, x.id()));
  }
}

/// Matrix product of the last two dimensions: (..., m, k) x (k, n) or (..., m, k) x (..., k, n),
/// leading dimensions equal.
template <Tensor L, Tensor R>
constexpr auto matmul(const L& lhs, const R& rhs) {
  return detail::apply(
      [](builder& b, const value_id* v, const shape&) -> value_id {
        if (b.failed()) return -1;
        const shape& l = b.type(v[0]).shape;
        const shape& r = b.type(v[1]).shape;
        if (l.rank < 1 || r.rank < 2 || (r.rank > 2 && r.rank != l.rank)) {
          b.p.error.record("S106", "matmul: ", b.type(v[0]), " and ", b.type(v[1]),
                           " are not (..., m, k) and (k, n) or (..., k, n)");
          return -1;
        }
        if (!same_extent(l[l.rank - 1], r[r.rank - 2])) {
          b.p.error.record("S101", "matmul: contracted extents differ: dimension ", l.rank - 1,
                           " of lhs ", b.type(v[0]), " has size ", l[l.rank - 1], ", dimension ",
                           r.rank - 2, " of rhs ", b.type(v[1]), " has size ", r[r.rank - 2]);
          return -1;
        }
        std::int64_t batch[max_rank] = {};
        for (int i = 0; i < max_rank; ++i) batch[i] = i;
        const ops::ints lead{batch, static_cast<std::size_t>(r.rank - 2)};
        const std::int64_t k_left[] = {l.rank - 1}, k_right[] = {r.rank - 2};
        return ops::dot_general(b, v[0], v[1], {lead, lead, k_left, k_right});
      },
      lhs, rhs);
}

/// `dot_general<axes<0>, axes<0>, axes<2>, axes<1>>(x, y)`: batch dimensions of both, then
/// contracted dimensions of both. Result: batch, free dimensions of lhs, free dimensions of rhs.
template <class LhsBatch, class RhsBatch, class LhsContract, class RhsContract, Tensor L, Tensor R>
constexpr auto dot_general(const L& lhs, const R& rhs) {
  return detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::dot_general(
            b, v[0], v[1],
            {LhsBatch::list(), RhsBatch::list(), LhsContract::list(), RhsContract::list()});
      },
      lhs, rhs);
}

namespace detail {
/// Reduces the given dimensions, or all without any.
template <combiner Combine, int... Dims>
struct reduce_emitter {
  constexpr value_id operator()(builder& b, const value_id* v, const shape&) const {
    if constexpr (sizeof...(Dims) > 0) {
      return ops::reduce(b, v[0], Combine, axes<Dims...>::list());
    } else {
      const std::int64_t all[max_rank] = {0, 1, 2, 3, 4, 5, 6, 7};
      return ops::reduce(b, v[0], Combine,
                         {all, static_cast<std::size_t>(b.type(v[0]).shape.rank)});
    }
  }
};
}  // namespace detail

/// Sum over the given dimensions (increasing), or over all without any; they disappear.
template <int... Dims, Tensor X>
constexpr auto sum(const X& x) {
  return detail::apply(detail::reduce_emitter<combiner::add, Dims...>{}, x);
}
template <int... Dims, Tensor X>
constexpr auto reduce_max(const X& x) {
  return detail::apply(detail::reduce_emitter<combiner::max, Dims...>{}, x);
}
template <int... Dims, Tensor X>
constexpr auto reduce_min(const X& x) {
  return detail::apply(detail::reduce_emitter<combiner::min, Dims...>{}, x);
}
/// Arithmetic mean over the given dimensions, or over all; NaN of nothing.
template <int... Dims, Tensor X>
constexpr auto mean(const X& x) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    const auto total = sum<Dims...>(x);
    std::int64_t n = 1;
    if constexpr (sizeof...(Dims) == 0)
      n = x.shape().elements();
    else
      ((n *= Dims >= 0 && Dims < X::rank ? x.shape()[Dims] : 1), ...);
    return total * detail::reciprocal(n);
  }
}

}  // namespace partita
