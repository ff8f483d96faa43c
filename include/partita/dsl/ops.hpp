/// The ops as functions of typed tensors: what models are written in.
///
/// Every function checks shapes and element types where the model is written, by the shape rule of
/// its op (see op/ for shapes, errors and tile maps).
#pragma once

#include <string_view>

#include <partita/dsl/apply.hpp>
#include <partita/dsl/order.hpp>
#include <partita/dsl/linalg.hpp>
#include <partita/dsl/elementwise.hpp>
#include <partita/dsl/random.hpp>
#include <partita/dsl/gather.hpp>
#include <partita/dsl/movement.hpp>
#include <partita/dsl/contraction.hpp>
#include <partita/dsl/convolution.hpp>
#include <partita/dsl/reduction.hpp>

namespace partita {

namespace detail {
/// 1 / n, NaN for 0: what a sum over n elements is multiplied with to give their mean.
constexpr double reciprocal(std::int64_t n) {
  return n == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0 / static_cast<double>(n);
}

/// The common shape of two operands, extended with leading dimensions and stretched from size 1.
constexpr shape broadcast_shape(builder& b, std::string_view op, const shape& x, const shape& y) {
  shape result;
  const int rank = x.rank > y.rank ? x.rank : y.rank;
  for (int i = 0; i < rank; ++i) {
    const int ix = i - (rank - x.rank), iy = i - (rank - y.rank);
    const std::int64_t ex = ix < 0 ? 1 : x[ix], ey = iy < 0 ? 1 : y[iy];
    if (ex != ey && ex != 1 && ey != 1 && ex != dyn && ey != dyn)
      b.p.error.record("S103", op, ": shapes ", x, " and ", y, " differ and do not broadcast");
    result.push_back(ex == 1 ? ey : ey == 1 ? ex : merge_extent(ex, ey));
  }
  return result;
}

/// Aligns the dimensions of `x` with the last ones of `to`. Scalars stay scalars.
constexpr value_id broadcast_last(builder& b, value_id x, const shape& to) {
  const int rank = b.type(x).shape.rank;
  if (rank == 0) return x;
  std::int64_t dims[max_rank] = {};
  for (int i = 0; i < rank; ++i) dims[i] = to.rank - rank + i;
  return ops::broadcast_in_dim(b, x, to, {dims, static_cast<std::size_t>(rank)});
}

constexpr value_id broadcast_binary(builder& b, std::string_view op, value_id x, value_id y,
                                    auto emit) {
  if (b.failed() || x < 0 || y < 0) return -1;
  const shape to = broadcast_shape(b, op, b.type(x).shape, b.type(y).shape);
  return emit(b, broadcast_last(b, x, to), broadcast_last(b, y, to));
}

/// A number as a scalar of the program and the element type of `x`. Errors: S117 it does not fit.
template <Tensor X, Number N>
constexpr auto scalar_like(const X& x, N number) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    using scalar = tensor<typename X::element>;
    builder* b = x.context();
    if (b == nullptr) return scalar(nullptr, x.id());  // of no program: reported where it meets one
    if constexpr (std::is_floating_point_v<N>)
      return scalar(b, ops::scalar(*b, dtype_of<typename X::element>, static_cast<double>(number)));
    else
      return scalar(
          b, ops::integer(*b, dtype_of<typename X::element>, static_cast<std::int64_t>(number)));
  }
}

template <class X, class Y, class Emit>
constexpr auto binary(const X& x, const Y& y, const Emit& emit) {
  if constexpr (Number<Y>)
    return binary(x, scalar_like(x, y), emit);
  else if constexpr (Number<X>)
    return binary(scalar_like(y, x), y, emit);
  else
    return apply(emit, x, y);
}

template <class X, class Y>
concept Operands = (Tensor<X> && (Tensor<Y> || Number<Y>)) || (Number<X> && Tensor<Y>);

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

/// Permutes dimensions: result dimension i is dimension Permutation[i] of x.
template <int... Permutation, Tensor X>
constexpr auto transpose(const X& x) {
  return detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::transpose(b, v[0], axes<Permutation...>::list());
      },
      x);
}

/// The same elements, row-major, as another shape: `reshape<4, 12>(x)`, or with extents that may be
/// run-time values: `reshape(x, dim<0>(x), heads, width)`.
template <std::int64_t... E, Tensor X>
requires(sizeof...(E) > 0) constexpr auto reshape(const X& x) {
  return detail::apply_with<shape{E...}>(
      [](builder& b, const value_id* v, const shape& to) { return ops::reshape(b, v[0], to); },
      shape{E...}, x);
}
template <Tensor X, class... E>
requires(sizeof...(E) > 0) constexpr auto reshape(const X& x, const E&... e) {
  return detail::apply_with<detail::static_extents<E...>>(
      [](builder& b, const value_id* v, const shape& to) { return ops::reshape(b, v[0], to); },
      detail::actual_extents(e...), x);
}

/// Dimension i of x becomes dimension Dims[i] of the result, whose extents are given.
template <int... Dims, Tensor X, class... E>
constexpr auto broadcast_in_dim(const X& x, const E&... e) {
  return detail::apply_with<detail::static_extents<E...>>(
      [](builder& b, const value_id* v, const shape& to) {
        return ops::broadcast_in_dim(b, v[0], to, axes<Dims...>::list());
      },
      detail::actual_extents(e...), x);
}

/// x with a last dimension of size 1, which broadcasts: (...) -> (..., 1).
template <Tensor X>
constexpr auto keep_last(const X& x) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return reshape(x, dim<I>(x)..., extent<1>{});
    }
    (std::make_integer_sequence<int, X::rank>{});
  }
}

/// result[i0, i1, ...] = i_Dim, with the given extents, in the program that `of` belongs to.
template <ElementType T, int Dim, Tensor X, class... E>
constexpr auto iota(const X& of, const E&... e) {
  return detail::apply_with<detail::static_extents<E...>>(
      [](builder& b, const value_id*, const shape& to) {
        return ops::iota(b, {dtype_of<T>, to}, Dim);
      },
      detail::actual_extents(e...), of);
}
/// A tensor of the program, shape and element type of `of`, whose elements all are `v`.
///
/// Errors    S117 the number is not a value of the element type
template <Tensor X>
constexpr X full_like(const X& of, double v) {
  if constexpr (!X::is_valid) {
    return of;
  } else {
    if (of.context() == nullptr) return of;
    return X(of.context(), ops::constant(*of.context(), of.type(), v));
  }
}

/// Rows of a table: (rows, d...), indices (i...) -> (i..., d...).
template <Tensor X, Tensor I>
constexpr auto gather(const X& table, const I& indices) {
  return detail::apply(
      [](builder& b, const value_id* v, const shape&) { return ops::gather(b, v[0], v[1]); }, table,
      indices);
}
/// Sums updates (i..., d...) by index (i...) into (rows, d...).
template <Tensor I, Tensor X, class Rows>
constexpr auto scatter_add(const I& indices, const X& updates, const Rows& rows) {
  return detail::apply_with<detail::static_extents<Rows>>(
      [](builder& b, const value_id* v, const shape& to) {
        return ops::scatter_add(b, v[0], v[1], to[0]);
      },
      detail::actual_extents(rows), indices, updates);
}

/// The operands one after the other along dimension Dim.
template <int Dim, Tensor... Xs>
requires(sizeof...(Xs) > 0) constexpr auto concatenate(const Xs&... xs) {
  return detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::concatenate(b, {v, sizeof...(Xs)}, Dim);
      },
      xs...);
}

/// Elements [Start, Limit) of dimension Dim, the other dimensions whole.
template <int Dim, std::int64_t Start, std::int64_t Limit, Tensor X>
constexpr auto slice(const X& x) {
  return detail::apply(
      [](builder& b, const value_id* v, const shape&) -> value_id {
        if (b.failed()) return -1;
        const int rank = b.type(v[0]).shape.rank;
        if (Dim < 0 || Dim >= rank) {
          b.p.error.record("S115", "slice: dimension ", Dim, " is out of range for ", b.type(v[0]));
          return -1;
        }
        std::int64_t start[max_rank] = {}, limit[max_rank] = {};
        for (auto& l : limit) l = ops::whole;
        start[Dim] = Start;
        limit[Dim] = Limit;
        const auto n = static_cast<std::size_t>(rank);
        return ops::slice(b, v[0], {start, n}, {limit, n});
      },
      x);
}

}  // namespace partita
