/// Slices, padding and reversal, and boxes at computed positions.
///
/// A negative `Axis` counts from the last dimension, as in NumPy.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/dsl/apply.hpp>

namespace partita {

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

}  // namespace dsl_detail

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

}  // namespace partita
