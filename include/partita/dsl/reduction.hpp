/// Reductions.
#pragma once

#include <bit>

#include <partita/dsl/region.hpp>
#include <partita/op/fold.hpp>
#include <partita/support/number_text.hpp>

namespace partita {

namespace dsl_detail {

/// Returns 1 / n, or NaN for 0: the factor that turns a sum over n elements into their mean.
constexpr double reciprocal(std::int64_t n) {
  return n == 0 ? std::bit_cast<double>(support_detail::usual_nan) : 1.0 / static_cast<double>(n);
}

/// Emits a reduction over the given dimensions, or over all dimensions by default.
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

}  // namespace dsl_detail

/// Sums over the given dimensions (increasing), by default over all; they disappear.
///
/// Errors    S104 not a number, S110 bad dimensions
template <int... Dims, Tensor X>
constexpr auto sum(const X& x) {
  return dsl_detail::apply(dsl_detail::reduce_emitter<combiner::add, Dims...>{}, x);
}
/// Returns the maximum over the given dimensions, or over all; NaN if an element is NaN.
template <int... Dims, Tensor X>
constexpr auto reduce_max(const X& x) {
  return dsl_detail::apply(dsl_detail::reduce_emitter<combiner::max, Dims...>{}, x);
}
/// Returns the minimum over the given dimensions, or over all; NaN if an element is NaN.
template <int... Dims, Tensor X>
constexpr auto reduce_min(const X& x) {
  return dsl_detail::apply(dsl_detail::reduce_emitter<combiner::min, Dims...>{}, x);
}
/// Multiplies the elements over the given dimensions, or over all.
template <int... Dims, Tensor X>
constexpr auto prod(const X& x) {
  return dsl_detail::apply(dsl_detail::reduce_emitter<combiner::multiply, Dims...>{}, x);
}
/// Combines elements over the given dimensions, or over all, with "and": logical for bool, bitwise
/// for integers.
///
/// Errors    S104 a floating-point type, S110 bad dimensions
template <int... Dims, Tensor X>
constexpr auto all(const X& x) {
  return dsl_detail::apply(dsl_detail::reduce_emitter<combiner::logical_and, Dims...>{}, x);
}
/// Combines elements over the given dimensions, or over all, with "or": logical for bool, bitwise
/// for integers.
template <int... Dims, Tensor X>
constexpr auto any(const X& x) {
  return dsl_detail::apply(dsl_detail::reduce_emitter<combiner::logical_or, Dims...>{}, x);
}
/// Returns the arithmetic mean over the given dimensions, or over all; NaN if there are no
/// elements.
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
    return total * dsl_detail::reciprocal(n);
  }
}

namespace dsl_detail {
/// Emits the extreme values along dimension Dim and their positions.
template <ops::extreme Which, int Dim>
struct extreme_emitter {
  constexpr value_id operator()(builder& b, const value_id* v, const shape&) const {
    if (b.failed() || v[0] < 0) return -1;
    const shape s = b.type(v[0]).shape;
    const std::int64_t dims[] = {Dim};
    if (Dim < 0 || Dim >= s.rank)
      return ops::reduce(b, v[0], combiner::max, dims);  // the shape rule reports it
    const value_id positions = ops::iota(b, tensor_type{dtype::i32, s}, Dim);
    return ops::reduce(b, v[0], positions, Which, dims);
  }
};
}  // namespace dsl_detail

/// Returns the maximum along a dimension, which disappears, and its position (i32): `auto [values,
/// positions] = max_with_position<1>(x)`. Among equal elements the first one wins; NaN precedes
/// every number.
///
/// Errors    S104 not a number, S110 bad dimension
template <int Dim, Tensor X>
constexpr auto max_with_position(const X& x) {
  return dsl_detail::apply_results<2>(dsl_detail::extreme_emitter<ops::extreme::argmax, Dim>{}, x);
}
/// Returns the minimum along a dimension, which disappears, and its position (i32).
template <int Dim, Tensor X>
constexpr auto min_with_position(const X& x) {
  return dsl_detail::apply_results<2>(dsl_detail::extreme_emitter<ops::extreme::argmin, Dim>{}, x);
}
/// Returns the position (i32) of the maximum along a dimension: the first of equal elements.
template <int Dim, Tensor X>
constexpr auto argmax(const X& x) {
  return std::get<1>(max_with_position<Dim>(x));
}
/// Returns the position (i32) of the minimum along a dimension: the first of equal elements.
template <int Dim, Tensor X>
constexpr auto argmin(const X& x) {
  return std::get<1>(min_with_position<Dim>(x));
}

namespace dsl_detail {
/// Adds scalar inputs with the tensors' element types: the argument of a function of scalars, one
/// scalar or a tuple.
template <class... Xs>
constexpr auto scalar_arguments(builder& b) {
  if constexpr (sizeof...(Xs) == 1)
    return (bind_region(b, tensor<typename Xs::element>()), ...);
  else
    return std::tuple{bind_region(b, tensor<typename Xs::element>())...};
}
/// Returns a number as the op `constant` stores it.
constexpr std::int64_t stored_number(dtype t, auto number) {
  return is_floating(t) ? std::bit_cast<std::int64_t>(static_cast<double>(number))
                        : static_cast<std::int64_t>(number);
}
template <class F, class Dims, class... Xs>
struct fold_emitter {
  constexpr value_id operator()(builder& b, const value_id* v, const shape&) const {
    builder f;
    const auto left = scalar_arguments<Xs...>(f), right = scalar_arguments<Xs...>(f);
    return_from(f, F{}(left, right));
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      std::int64_t identities[sizeof...(Xs)] = {};
      if constexpr (sizeof...(Xs) == 1)
        ((identities[I] = stored_number(dtype_of<typename Xs::element>, F::identity)), ...);
      else
        ((identities[I] = stored_number(dtype_of<typename Xs::element>, std::get<I>(F::identity))),
         ...);
      std::int64_t all[max_rank] = {};
      for (int d = 0; d < max_rank; ++d) all[d] = d;
      const auto rank = static_cast<std::size_t>(b.type(v[0]).shape.rank);
      const ops::ints dims = Dims::list().empty() ? ops::ints(all, rank) : ops::ints(Dims::list());
      return ops::fold(b, {v, sizeof...(Xs)}, dims, identities, F::commutes, f.p);
    }
    (std::index_sequence_for<Xs...>{});
  }
};
}  // namespace dsl_detail

/// Reduces the elements along some dimensions, which disappear, with an associative function of
/// scalars: `F{}(earlier, later)`. Without dimensions it reduces all. For several tensors, the
/// function takes and returns tuples with one element of each.
///
/// Errors    S198 the function uses an op that is not elementwise
///
/// ```cpp
/// struct log_add {
///   static constexpr double identity = -infinity;  // several: std::tuple{-infinity, 0}
///   static constexpr bool commutes = true;
///   constexpr auto operator()(auto a, auto b) const { return a + log1p(exp(b - a)); }
/// };
/// const auto y = pt::fold<log_add, 1>(x);  // (n, k) -> (n)
/// ```
template <class F, int... Dims, Tensor X, Tensor... Xs>
constexpr auto fold(const X& x, const Xs&... xs) {
  using emitter = dsl_detail::fold_emitter<F, axes<Dims...>, X, Xs...>;
  if constexpr (sizeof...(Xs) == 0)
    return dsl_detail::apply(emitter{}, x);
  else
    return dsl_detail::apply_results<1 + sizeof...(Xs)>(emitter{}, x, xs...);
}

/// Options of cumsum and similar functions: run from the last element on; exclude the element
/// itself.
struct cumsum_options {
  bool reverse = false, exclusive = false;
};

namespace dsl_detail {
template <int Dim, cumsum_options Options, combiner Combine, class X>
constexpr auto running(const X& x) {
  return apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::cumsum(b, v[0], Dim, Options.reverse, Options.exclusive, Combine);
      },
      x);
}
}  // namespace dsl_detail

/// Returns running sums along a dimension: result[i] = x[0] + ... + x[i]. With
/// `cumsum_options{.reverse = true, .exclusive = true}`: x[i + 1] + ... + x[n - 1].
///
/// Errors    S104 not a number, S155 bad dimension
template <int Dim, cumsum_options Options = cumsum_options{}, Tensor X>
constexpr auto cumsum(const X& x) {
  return dsl_detail::running<Dim, Options, combiner::add>(x);
}
/// Returns running products along a dimension.
template <int Dim, cumsum_options Options = cumsum_options{}, Tensor X>
constexpr auto cumprod(const X& x) {
  return dsl_detail::running<Dim, Options, combiner::multiply>(x);
}
/// Returns running maxima along a dimension.
template <int Dim, cumsum_options Options = cumsum_options{}, Tensor X>
constexpr auto cummax(const X& x) {
  return dsl_detail::running<Dim, Options, combiner::max>(x);
}
/// Returns running minima along a dimension.
template <int Dim, cumsum_options Options = cumsum_options{}, Tensor X>
constexpr auto cummin(const X& x) {
  return dsl_detail::running<Dim, Options, combiner::min>(x);
}

}  // namespace partita
