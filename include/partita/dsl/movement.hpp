/// Data movement: shapes, slices, padding, joining and splitting.
///
/// A negative `Axis` counts from the last dimension, as in NumPy.
#pragma once

#include <array>
#include <bit>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <partita/dsl/apply.hpp>

namespace partita {

/// Permutes dimensions: result dimension i is dimension Permutation[i] of x.
///
/// Errors    S108 not a permutation
template <int... Permutation, Tensor X>
constexpr auto transpose(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::transpose(b, v[0], axes<Permutation...>::list());
      },
      x);
}

/// Changes the shape and keeps the elements in row-major order: `reshape<4, 12>(x)`. Extents may be
/// run-time values: `reshape(x, dim<0>(x), heads, width)`.
///
/// Errors    S107 element counts differ
template <std::int64_t... E, Tensor X>
requires(sizeof...(E) > 0) constexpr auto reshape(const X& x) {
  return dsl_detail::apply_with<shape{E...}>(
      [](builder& b, const value_id* v, const shape& to) { return ops::reshape(b, v[0], to); },
      shape{E...}, x);
}
/// Changes the shape to extents that may be run-time values.
template <Tensor X, class... E>
requires(sizeof...(E) > 0) constexpr auto reshape(const X& x, const E&... e) {
  return dsl_detail::apply_with<dsl_detail::static_extents<E...>>(
      [](builder& b, const value_id* v, const shape& to) { return ops::reshape(b, v[0], to); },
      dsl_detail::actual_extents(e...), x);
}

/// Repeats x along new dimensions: dimension i of x becomes dimension Dims[i] of the result, whose
/// extents are given.
///
/// Errors    S109 bad dimensions, or an extent that is neither 1 nor that of the result
template <int... Dims, Tensor X, class... E>
constexpr auto broadcast_in_dim(const X& x, const E&... e) {
  return dsl_detail::apply_with<dsl_detail::static_extents<E...>>(
      [](builder& b, const value_id* v, const shape& to) {
        return ops::broadcast_in_dim(b, v[0], to, axes<Dims...>::list());
      },
      dsl_detail::actual_extents(e...), x);
}

/// Appends a dimension of size 1, which broadcasts: (...) -> (..., 1).
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

/// Returns result[i0, i1, ...] = i_Dim with the given extents, in the program of `of`.
///
/// Errors    S113 Dim out of range
template <ElementType T, int Dim, Tensor X, class... E>
constexpr auto iota(const X& of, const E&... e) {
  return dsl_detail::apply_with<dsl_detail::static_extents<E...>>(
      [](builder& b, const value_id*, const shape& to) {
        return ops::iota(b, {dtype_of<T>, to}, Dim);
      },
      dsl_detail::actual_extents(e...), of);
}
/// Returns a constant with the given elements, in row-major order, in the program of `of`:
/// `literal<float, 2, 2>(x, {1, 2, 3, 4})`.
///
/// Errors    S144 the number of elements differs from the product of E...
template <ElementType T, std::int64_t... E, Tensor X>
constexpr tensor<T, E...> literal(const X& of, span<const T> elements) {
  if (of.context() == nullptr) return {nullptr, of.id()};
  vec<std::int64_t> bits;
  for (const T& v : elements) {
    if constexpr (std::is_same_v<T, double>)
      bits.push_back(std::bit_cast<std::int64_t>(v));
    else if constexpr (is_floating(dtype_of<T>))
      bits.push_back(std::bit_cast<std::int64_t>(static_cast<double>(static_cast<float>(v))));
    else
      bits.push_back(static_cast<std::int64_t>(v));
  }
  return {of.context(), ops::literal(*of.context(), {dtype_of<T>, shape{E...}}, bits)};
}
/// Returns a constant with the given elements.
template <ElementType T, std::int64_t... E, Tensor X>
constexpr tensor<T, E...> literal(const X& of, std::initializer_list<T> elements) {
  return literal<T, E...>(of, span<const T>(elements.begin(), elements.size()));
}
/// Returns a tensor with the program, shape and element type of `of`, all of whose elements are
/// `v`.
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

namespace dsl_detail {

/// Returns a dimension in [0, rank); negative ones count from the last. Returns -1 on errors.
///
/// Errors    S100 rank above 8, S145 out of range
constexpr int axis_of(builder& b, std::string_view op, int axis, int rank) {
  if (rank > max_rank)
    b.p.error.record("S100", op, ": the result has rank ", rank, "; at most ", max_rank,
                     " is supported");
  if (b.failed()) return -1;
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  b.p.error.record("S145", op, ": axis ", axis, " is out of range for rank ", rank);
  return -1;
}
/// Slices elements start, start + stride, ... below limit of one dimension.
constexpr value_id slice_axis(builder& b, value_id x, int axis, std::int64_t start,
                              std::int64_t limit, std::int64_t stride = 1) {
  std::int64_t starts[max_rank] = {}, limits[max_rank] = {}, strides[max_rank] = {};
  for (auto& l : limits) l = ops::whole;
  for (auto& s : strides) s = 1;
  starts[axis] = start;
  limits[axis] = limit;
  strides[axis] = stride;
  const auto rank = static_cast<std::size_t>(b.type(x).shape.rank);
  return ops::slice(b, x, {starts, rank}, {limits, rank}, {strides, rank});
}
/// Returns `from` with an additional dimension of size 1 before dimension `axis`.
constexpr shape with_axis(const shape& from, int axis) {
  shape to;
  for (int d = 0; d <= from.rank; ++d) {
    if (d == axis) to.push_back(1);
    if (d < from.rank) to.push_back(from[d]);
  }
  return to;
}

}  // namespace dsl_detail

/// Joins the operands along dimension Dim.
///
/// Errors    S102 element types differ, S114 bad dimension or shapes
template <int Dim, Tensor... Xs>
requires(sizeof...(Xs) > 0) constexpr auto concatenate(const Xs&... xs) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::concatenate(b, {v, sizeof...(Xs)}, Dim);
      },
      xs...);
}

/// The limit of a slice that extends to the end of the dimension.
inline constexpr std::int64_t to_end = ops::whole;

/// A slice along dimension Axis: elements Start, Start + Stride, ... below Limit.
template <int Axis, std::int64_t Start, std::int64_t Limit = to_end, std::int64_t Stride = 1>
struct along {
  static constexpr int axis = Axis;
  static constexpr std::int64_t start = Start, limit = Limit, stride = Stride;
};

namespace dsl_detail {
template <class T>
inline constexpr bool is_along = false;
template <int Axis, std::int64_t Start, std::int64_t Limit, std::int64_t Stride>
inline constexpr bool is_along<along<Axis, Start, Limit, Stride>> = true;

/// Emits the slice of several dimensions.
///
/// Errors    S115 a dimension out of range, or given twice
template <class... Parts>
struct slice_emitter {
  constexpr value_id operator()(builder& b, const value_id* v, const shape&) const {
    if (b.failed()) return -1;
    const int rank = b.type(v[0]).shape.rank;
    std::int64_t starts[max_rank] = {}, limits[max_rank] = {}, strides[max_rank] = {};
    for (auto& l : limits) l = ops::whole;
    for (auto& s : strides) s = 1;
    bool given[max_rank] = {};
    const auto set = [&](int axis, std::int64_t start, std::int64_t limit, std::int64_t stride) {
      const int d = axis < 0 ? axis + rank : axis;
      if (d < 0 || d >= rank)
        return b.p.error.record("S115", "slice: dimension ", axis, " is out of range for ",
                                b.type(v[0]));
      if (given[d])
        return b.p.error.record("S115", "slice: dimension ", d, " of ", b.type(v[0]),
                                " is given twice");
      given[d] = true;
      starts[d] = start;
      limits[d] = limit;
      strides[d] = stride;
    };
    (set(Parts::axis, Parts::start, Parts::limit, Parts::stride), ...);
    if (b.failed()) return -1;
    const auto count = static_cast<std::size_t>(rank);
    return ops::slice(b, v[0], {starts, count}, {limits, count}, {strides, count});
  }
};
}  // namespace dsl_detail

/// Slices one dimension and keeps the others in full. `slice<1, 2, 6>(x)` has elements 2 to 5 of
/// dimension 1; `slice<1, 2>(x)` goes from 2 to the end. With a stride n, every n-th element is
/// kept.
///
/// Errors    S115 bounds out of range, S130 a stride below 1
template <int Axis, std::int64_t Start, std::int64_t Limit = to_end, std::int64_t Stride = 1,
          Tensor X>
constexpr auto slice(const X& x) {
  return dsl_detail::apply(dsl_detail::slice_emitter<along<Axis, Start, Limit, Stride>>{}, x);
}
/// Slices several dimensions: `slice<along<0, 4>, along<-1, 1, 5>>(x)`.
///
/// Errors    S115 bounds out of range, or a dimension given twice, S130 a stride below 1
template <class... Parts, Tensor X>
requires(sizeof...(Parts) > 0 &&
         (dsl_detail::is_along<Parts> && ...)) constexpr auto slice(const X& x) {
  return dsl_detail::apply(dsl_detail::slice_emitter<Parts...>{}, x);
}
/// Slices all dimensions, by starts, limits and strides: `slice<axes<0, 2>, axes<4, 8>, axes<1,
/// 3>>(x)`.
///
/// Errors    S115 bounds out of range, S130 a stride below 1
template <class Starts, class Limits, class Strides = axes<>, Tensor X>
requires(!dsl_detail::is_along<Starts>) constexpr auto slice(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::slice(b, v[0], Starts::list(), Limits::list(), Strides::list());
      },
      x);
}

/// Pads each dimension with values before and after its elements, and, with a third list, between
/// them: `pad<axes<0, 1>, axes<0, 2>>(x, 0)`. Negative amounts remove elements.
///
/// Errors    S102, S131, S132, S133, S134 (see op/pad.hpp)
template <class Low, class High, class Interior = axes<>, Tensor X, Tensor V>
constexpr auto pad(const X& x, const V& value) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::pad(b, v[0], v[1], Low::list(), High::list(), Interior::list());
      },
      x, value);
}
/// Pads with a number.
template <class Low, class High, class Interior = axes<>, Tensor X, Number N>
constexpr auto pad(const X& x, N value) {
  using scalar = tensor<typename X::element>;
  builder* b = x.context();
  value_id v = x.id();
  if (b != nullptr) v = ops::scalar(*b, dtype_of<typename X::element>, static_cast<double>(value));
  return pad<Low, High, Interior>(x, scalar(b, v));
}

/// Reverses the order of elements along the dimensions, which are increasing.
///
/// Errors    S135 bad dimensions
template <int... Dims, Tensor X>
constexpr auto reverse(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::reverse(b, v[0], axes<Dims...>::list());
      },
      x);
}
/// Reverses the order of elements along one axis.
///
/// Errors    S145 axis out of range
template <int Axis, Tensor X>
constexpr auto flip(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) -> value_id {
        const std::int64_t dims[] = {dsl_detail::axis_of(b, "flip", Axis, b.type(v[0]).shape.rank)};
        return dims[0] < 0 ? -1 : ops::reverse(b, v[0], dims);
      },
      x);
}

/// Reads the box of these sizes (`ops::whole`: the extent) at computed starts:
/// `dynamic_slice<axes<1, 4>>(x, i, j)`. The starts are one integer scalar per dimension, clamped
/// so that the box is within x.
///
/// Errors    S136 bad starts, S137 bad sizes
template <class Sizes, Tensor X, Tensor... Starts>
constexpr auto dynamic_slice(const X& x, const Starts&... starts) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::dynamic_slice(b, v[0], {v + 1, sizeof...(Starts)}, Sizes::list());
      },
      x, starts...);
}
/// Returns x with the box at computed starts replaced by `update`. The starts are clamped.
///
/// Errors    S102 element types differ, S136 bad starts, S138 the update does not fit
template <Tensor X, Tensor U, Tensor... Starts>
constexpr auto dynamic_update_slice(const X& x, const U& update, const Starts&... starts) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::dynamic_update_slice(b, v[0], v[1], {v + 2, sizeof...(Starts)});
      },
      x, update, starts...);
}

/// Inserts a dimension of size 1, which is dimension Axis of the result.
///
/// Errors    S100 rank above 8, S145 axis out of range
template <int Axis, Tensor X>
constexpr auto expand_dims(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) -> value_id {
        const shape from = b.type(v[0]).shape;
        const int axis = dsl_detail::axis_of(b, "expand_dims", Axis, from.rank + 1);
        return axis < 0 ? -1 : ops::reshape(b, v[0], dsl_detail::with_axis(from, axis));
      },
      x);
}
/// Removes the given dimensions, which have size 1.
///
/// Errors    S145 axis out of range, S146 a dimension of another size, or given twice
template <int... Axes, Tensor X>
requires(sizeof...(Axes) > 0) constexpr auto squeeze(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) -> value_id {
        const shape from = b.type(v[0]).shape;
        bool gone[max_rank] = {};
        for (int each : {Axes...}) {
          const int axis = dsl_detail::axis_of(b, "squeeze", each, from.rank);
          if (axis < 0) return -1;
          if (gone[axis] || !same_extent(from[axis], 1)) {
            b.p.error.record("S146", "squeeze: dimension ", axis, " of ", b.type(v[0]),
                             " has another size than 1, or is given twice");
            return -1;
          }
          gone[axis] = true;
        }
        shape to;
        for (int d = 0; d < from.rank; ++d)
          if (!gone[d]) to.push_back(from[d]);
        return ops::reshape(b, v[0], to);
      },
      x);
}

/// Stacks tensors of one shape along a new dimension, which is dimension Axis of the result.
///
/// Errors    S100 rank above 8, S102 element types differ, S114 shapes differ, S145 axis out of
///           range
template <int Axis, Tensor... Xs>
requires(sizeof...(Xs) > 0) constexpr auto stack(const Xs&... xs) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) -> value_id {
        const int axis = dsl_detail::axis_of(b, "stack", Axis, b.type(v[0]).shape.rank + 1);
        value_id parts[sizeof...(Xs)] = {};
        for (std::size_t i = 0; i < sizeof...(Xs); ++i) {
          const shape from = b.type(v[i]).shape;
          if (axis < 0 || axis > from.rank) return ops::concatenate(b, {v, sizeof...(Xs)}, 0);
          parts[i] = ops::reshape(b, v[i], dsl_detail::with_axis(from, axis));
        }
        return ops::concatenate(b, {parts, sizeof...(Xs)}, axis);
      },
      xs...);
}

namespace dsl_detail {
template <int Axis, int Parts, int I>
struct split_emitter {
  constexpr value_id operator()(builder& b, const value_id* v, const shape&) const {
    const tensor_type from = b.type(v[0]);
    const int axis = axis_of(b, "split", Axis, from.shape.rank);
    if (axis < 0) return -1;
    const std::int64_t extent = from.shape[axis];
    if (extent == dyn) return v[0];  // a placeholder with the static type of a part
    if (extent % Parts != 0) {
      b.p.error.record("S147", "split: dimension ", axis, " of ", from, " is not divisible by ",
                       Parts);
      return -1;
    }
    return slice_axis(b, v[0], axis, extent / Parts * I, extent / Parts * (I + 1));
  }
};
}  // namespace dsl_detail

/// Splits x into equal parts along Axis, as a std::array: `const auto [q, k, v] = split<3, 2>(x)`.
/// If lambdas use the parts, write `const auto parts = split<3, 2>(x)` and `parts[0]`: Clang does
/// not accept captured structured bindings in constant expressions, which `check` needs.
///
/// Errors    S145 axis out of range, S147 not divisible
template <int Parts, int Axis, Tensor X>
requires(Parts > 0) constexpr auto split(const X& x) {
  const auto first = dsl_detail::apply(dsl_detail::split_emitter<Axis, Parts, 0>{}, x);
  using part = std::remove_cvref_t<decltype(first)>;
  std::array<part, static_cast<std::size_t>(Parts)> parts{};
  if constexpr (part::is_valid) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
      parts[0] = first;
      ((parts[I + 1] = dsl_detail::apply(dsl_detail::split_emitter<Axis, Parts, I + 1>{}, x)), ...);
    }
    (std::make_integer_sequence<int, Parts - 1>{});
  }
  return parts;
}

/// Rotates x along Axis: result[..., i + Shift, ...] = x[..., i, ...]. Elements that leave one end
/// enter at the other.
///
/// Errors    S145 axis out of range
template <std::int64_t Shift, int Axis, Tensor X>
constexpr auto roll(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) -> value_id {
        const shape from = b.type(v[0]).shape;
        const int axis = dsl_detail::axis_of(b, "roll", Axis, from.rank);
        if (axis < 0) return -1;
        return ops::roll(b, v[0], axis, Shift);
      },
      x);
}

}  // namespace partita
