/// The ops as functions of typed tensors: what models are written in.
///
/// Every function checks shapes and element types where the model is written, by the shape rule of
/// its op (see op/ for shapes, errors and tile maps). Binary operators broadcast as NumPy does, and
/// take plain numbers.
#pragma once

#include <limits>
#include <string_view>

#include <partita/dsl/apply.hpp>
#include <partita/dsl/gather.hpp>
#include <partita/dsl/movement.hpp>

namespace partita {

namespace detail {

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

/// 1 / n, NaN for 0: what a sum over n elements is multiplied with to give their mean.
constexpr double reciprocal(std::int64_t n) {
  return n == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0 / static_cast<double>(n);
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

template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto operator+(const X& x, const Y& y) {
  return detail::binary(x, y, [](builder& b, const value_id* v, const shape&) {
    return detail::broadcast_binary(b, "add", v[0], v[1], ops::add);
  });
}
template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto operator-(const X& x, const Y& y) {
  return detail::binary(x, y, [](builder& b, const value_id* v, const shape&) {
    return detail::broadcast_binary(b, "subtract", v[0], v[1], ops::subtract);
  });
}
template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto operator*(const X& x, const Y& y) {
  return detail::binary(x, y, [](builder& b, const value_id* v, const shape&) {
    return detail::broadcast_binary(b, "multiply", v[0], v[1], ops::multiply);
  });
}
template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto operator/(const X& x, const Y& y) {
  return detail::binary(x, y, [](builder& b, const value_id* v, const shape&) {
    return detail::broadcast_binary(b, "divide", v[0], v[1], ops::divide);
  });
}
template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto maximum(const X& x, const Y& y) {
  return detail::binary(x, y, [](builder& b, const value_id* v, const shape&) {
    return detail::broadcast_binary(b, "maximum", v[0], v[1], ops::maximum);
  });
}
template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto minimum(const X& x, const Y& y) {
  return detail::binary(x, y, [](builder& b, const value_id* v, const shape&) {
    return detail::broadcast_binary(b, "minimum", v[0], v[1], ops::minimum);
  });
}

namespace detail {
template <ops::direction D, class X, class Y>
constexpr auto comparison(const X& x, const Y& y) {
  return binary(x, y, [](builder& b, const value_id* v, const shape&) {
    return broadcast_binary(b, "compare", v[0], v[1], [](builder& c, value_id l, value_id r) {
      return ops::compare(c, D, l, r);
    });
  });
}
}  // namespace detail

/// Elementwise comparisons give tensors of bool.
template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto equal(const X& x, const Y& y) {
  return detail::comparison<ops::direction::eq>(x, y);
}
template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto not_equal(const X& x, const Y& y) {
  return detail::comparison<ops::direction::ne>(x, y);
}
template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto operator<(const X& x, const Y& y) {
  return detail::comparison<ops::direction::lt>(x, y);
}
template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto operator<=(const X& x, const Y& y) {
  return detail::comparison<ops::direction::le>(x, y);
}
template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto operator>(const X& x, const Y& y) {
  return detail::comparison<ops::direction::gt>(x, y);
}
template <class X, class Y>
requires detail::Operands<X, Y>
constexpr auto operator>=(const X& x, const Y& y) {
  return detail::comparison<ops::direction::ge>(x, y);
}

#define PARTITA_UNARY(function, emitter)                                                       \
  template <Tensor X>                                                                          \
  constexpr auto function(const X& x) {                                                        \
    return detail::apply(                                                                      \
        [](builder& b, const value_id* v, const shape&) { return ops::emitter(b, v[0]); }, x); \
  }
PARTITA_UNARY(operator-, negate)
PARTITA_UNARY(exp, exp)
PARTITA_UNARY(log, log)
PARTITA_UNARY(tanh, tanh)
PARTITA_UNARY(erf, erf)
PARTITA_UNARY(sqrt, sqrt)
PARTITA_UNARY(rsqrt, rsqrt)
PARTITA_UNARY(stop_gradient, stop_gradient)
#undef PARTITA_UNARY

/// predicate ? x : y, elementwise. The shapes broadcast; one of x and y may be a number.
template <Tensor P, class X, class Y>
requires detail::Operands<X, Y>
constexpr auto select(const P& predicate, const X& x, const Y& y) {
  if constexpr (Number<X>) {
    return select(predicate, detail::scalar_like(y, x), y);
  } else if constexpr (Number<Y>) {
    return select(predicate, x, detail::scalar_like(x, y));
  } else {
    return detail::apply(
        [](builder& b, const value_id* v, const shape&) -> value_id {
          if (b.failed()) return -1;
          shape to = detail::broadcast_shape(b, "select", b.type(v[1]).shape, b.type(v[2]).shape);
          to = detail::broadcast_shape(b, "select", b.type(v[0]).shape, to);
          return ops::select(b, detail::broadcast_last(b, v[0], to),
                             detail::broadcast_last(b, v[1], to),
                             detail::broadcast_last(b, v[2], to));
        },
        predicate, x, y);
  }
}

/// The values as another element type (see op/convert.hpp for rounding).
template <ElementType T, Tensor X>
constexpr auto convert(const X& x) {
  return detail::apply([](builder& b, const value_id* v,
                          const shape&) { return ops::convert(b, v[0], dtype_of<T>); },
                       x);
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
