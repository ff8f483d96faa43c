/// NumPy-style broadcasting of typed operands, and plain numbers as operands.
#pragma once

#include <string_view>

#include <partita/dsl/apply.hpp>

namespace partita::dsl_detail {

/// Returns the common shape of two operands: missing leading dimensions and dimensions of size 1
/// are stretched.
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

/// Broadcasts `x` to `to`, aligned at the last dimensions. Scalars stay scalars.
constexpr value_id broadcast_last(builder& b, value_id x, const shape& to) {
  const int rank = b.type(x).shape.rank;
  if (rank == 0) return x;
  std::int64_t dims[max_rank] = {};
  for (int i = 0; i < rank; ++i) dims[i] = to.rank - rank + i;
  return ops::broadcast_in_dim(b, x, to, {dims, static_cast<std::size_t>(rank)});
}

/// True if all values but scalars have one shape. (Makes few calls: most ops of a trace qualify.)
template <class... Ids>
constexpr bool of_one_shape(const builder& b, Ids... values) {
  const tensor_type* const types = b.p.types.data();
  const shape* one = nullptr;
  bool same = true;
  for (const value_id v : {values...}) {
    const shape& each = types[v].shape;
    if (each.rank == 0) continue;
    if (one == nullptr) one = &each;
    same = same && one->rank == each.rank;
    for (int i = 0; same && i < each.rank; ++i) same = one->extents[i] == each.extents[i];
  }
  return same;
}

/// Emits an elementwise op: broadcasts the operands to their common shape and calls `emit(b,
/// operands...)`.
template <class Emit, class... Ids>
constexpr value_id broadcast(builder& b, std::string_view op, const Emit& emit, Ids... operands) {
  if (b.failed() || ((operands < 0) || ...)) return -1;
  if (of_one_shape(b, operands...)) return emit(b, operands...);
  shape to;
  ((to = broadcast_shape(b, op, to, b.type(operands).shape)), ...);
  ((operands = broadcast_last(b, operands, to)), ...);
  return emit(b, operands...);
}

/// Returns a number as a scalar with the program and element type of `x`.
///
/// Errors    S117 the number is not a value of the type
template <Tensor X, Number N>
constexpr auto scalar_like(const X& x, N number) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    using scalar = tensor<typename X::element>;
    builder* b = x.context();
    if (b == nullptr)
      return scalar(nullptr, x.id());  // no program: reported where it is used in one
    if constexpr (std::is_floating_point_v<N>)
      return scalar(b, ops::scalar(*b, dtype_of<typename X::element>, static_cast<double>(number)));
    else
      return scalar(
          b, ops::integer(*b, dtype_of<typename X::element>, static_cast<std::int64_t>(number)));
  }
}
/// Returns an operand as a tensor: a number becomes a scalar like `x`.
template <Tensor X, class Operand>
constexpr auto operand_like(const X& x, const Operand& operand) {
  if constexpr (Number<Operand>)
    return scalar_like(x, operand);
  else
    return operand;
}

/// Applies a binary op to two tensors, or to a tensor and a number.
template <class X, class Y, class Emit>
constexpr auto binary(const X& x, const Y& y, const Emit& emit) {
  if constexpr (Number<Y>)
    return apply(emit, x, scalar_like(x, y));
  else
    return apply(emit, operand_like(y, x), y);
}

template <class X, class Y>
concept Operands = (Tensor<X> && (Tensor<Y> || Number<Y>)) || (Number<X> && Tensor<Y>);

}  // namespace partita::dsl_detail
