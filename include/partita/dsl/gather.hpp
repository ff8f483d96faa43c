/// gather and scatter, and the functions that NumPy and JAX derive from them.
///
/// Indices are integers of any type. Gathering clamps indices that are out of range; updates at
/// such indices are skipped. Negative indices do not count from the end.
#pragma once

#include <partita/dsl/movement.hpp>

namespace partita {

/// The dimension numbers of a gather or scatter as a type, for example `gather_numbers<axes<1>,
/// axes<0>, axes<>, axes<>, axes<0>, 1>`.
template <class OffsetDims, class CollapsedSliceDims, class OperandBatchingDims,
          class StartIndicesBatchingDims, class StartIndexMap, int IndexVectorDim>
struct gather_numbers {
  /// Returns the dimension numbers as a value.
  static constexpr ops::gather_dimensions dims() {
    return {OffsetDims::list(),          CollapsedSliceDims::list(),
            OperandBatchingDims::list(), StartIndicesBatchingDims::list(),
            StartIndexMap::list(),       IndexVectorDim};
  }
};

/// Reads windows of the given sizes (`ops::whole`: the extent) at computed positions (see
/// op/gather.hpp).
///
/// Errors    S111 indices are not integers, S139 bad dimension numbers, S140 bad slice sizes
template <class Numbers, class SliceSizes, Tensor X, Tensor I>
constexpr auto gather(const X& x, const I& indices) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::gather(b, v[0], v[1], Numbers::dims(), SliceSizes::list());
      },
      x, indices);
}
/// Reads rows of a table.
///
/// Shapes    table (rows, d...), indices (i...) -> (i..., d...)
/// Errors    S111 indices are not integers, or the table is a scalar
template <Tensor X, Tensor I>
constexpr auto gather(const X& table, const I& indices) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) { return ops::gather(b, v[0], v[1]); }, table,
      indices);
}

/// Reads entries of x along Axis.
///
/// Shapes    x (a..., n, c...), indices (i...) -> (a..., i..., c...)
/// Errors    S145 axis out of range, S111 indices are not integers
template <int Axis, Tensor X, Tensor I>
constexpr auto take(const X& x, const I& indices) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) -> value_id {
        const int rank = b.type(v[0]).shape.rank, indexed = b.type(v[1]).shape.rank;
        const int axis = dsl_detail::axis_of(b, "take", Axis, rank);
        if (axis < 0) return -1;
        std::int64_t offset[max_rank] = {}, sizes[max_rank] = {};
        std::size_t count = 0;
        for (int d = 0; d < rank; ++d) {
          sizes[d] = d == axis ? 1 : ops::whole;
          if (d != axis) offset[count++] = d < axis ? d : d + indexed - 1;
        }
        const std::int64_t along[] = {axis};
        return ops::gather(b, v[0], v[1], {{offset, count}, along, {}, {}, along, indexed},
                           {sizes, static_cast<std::size_t>(rank)});
      },
      x, indices);
}

/// Computes result[..., i, ...] = x[..., indices[..., i, ...], ...] along Axis.
///
/// Shapes    x (a..., n, c...), indices (a..., m, c...) -> (a..., m, c...)
/// Errors    S145 axis out of range, S148 ranks differ
template <int Axis, Tensor X, Tensor I>
constexpr auto take_along_axis(const X& x, const I& indices) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) -> value_id {
        const int rank = b.type(v[0]).shape.rank;
        const int axis = dsl_detail::axis_of(b, "take_along_axis", Axis, rank);
        if (axis < 0) return -1;
        if (b.type(v[1]).shape.rank != rank) {
          b.p.error.record("S148", "take_along_axis: ", b.type(v[0]), " and indices ", b.type(v[1]),
                           " differ in rank");
          return -1;
        }
        std::int64_t batching[max_rank] = {}, sizes[max_rank] = {};
        std::size_t count = 0;
        for (int d = 0; d < rank; ++d) {
          sizes[d] = 1;
          if (d != axis) batching[count++] = d;
        }
        const ops::ints others{batching, count};
        const std::int64_t along[] = {axis};
        return ops::gather(b, v[0], v[1], {{}, along, others, others, along, rank},
                           {sizes, static_cast<std::size_t>(rank)});
      },
      x, indices);
}

/// Updates windows of x at computed positions (see op/scatter.hpp).
///
/// Errors    S102, S104, S112, S120, S139 (see op/scatter.hpp)
template <ops::scatter_update Update, class Numbers, Tensor X, Tensor I, Tensor U>
constexpr auto scatter(const X& x, const I& indices, const U& updates) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::scatter(b, Update, v[0], v[1], v[2], Numbers::dims());
      },
      x, indices, updates);
}
/// Updates rows of x.
///
/// Shapes    x (rows, d...), indices (i...), updates (i..., d...) -> (rows, d...)
/// Errors    S102, S104, S112, S120 (see op/scatter.hpp)
template <ops::scatter_update Update, Tensor X, Tensor I, Tensor U>
constexpr auto scatter(const X& x, const I& indices, const U& updates) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        return ops::scatter_rows(b, Update, v[0], v[1], v[2]);
      },
      x, indices, updates);
}

// Rows updated as JAX's x.at[indices].set(updates), .add(updates), ...
/// Replaces rows of x; if several updates have one index, the last one wins.
template <Tensor X, Tensor I, Tensor U>
constexpr auto scatter_set(const X& x, const I& indices, const U& updates) {
  return scatter<ops::scatter_update::assign>(x, indices, updates);
}
/// Adds updates to rows of x.
template <Tensor X, Tensor I, Tensor U>
constexpr auto scatter_add(const X& x, const I& indices, const U& updates) {
  return scatter<ops::scatter_update::add>(x, indices, updates);
}
/// Takes the maximum of rows of x and their updates.
template <Tensor X, Tensor I, Tensor U>
constexpr auto scatter_max(const X& x, const I& indices, const U& updates) {
  return scatter<ops::scatter_update::max>(x, indices, updates);
}
/// Takes the minimum of rows of x and their updates.
template <Tensor X, Tensor I, Tensor U>
constexpr auto scatter_min(const X& x, const I& indices, const U& updates) {
  return scatter<ops::scatter_update::min>(x, indices, updates);
}
/// Multiplies rows of x by their updates.
template <Tensor X, Tensor I, Tensor U>
constexpr auto scatter_multiply(const X& x, const I& indices, const U& updates) {
  return scatter<ops::scatter_update::multiply>(x, indices, updates);
}
/// Combines rows of x with "and": logical for bool, bitwise for integers.
template <Tensor X, Tensor I, Tensor U>
constexpr auto scatter_and(const X& x, const I& indices, const U& updates) {
  return scatter<ops::scatter_update::logical_and>(x, indices, updates);
}
/// Combines rows of x with "or": logical for bool, bitwise for integers.
template <Tensor X, Tensor I, Tensor U>
constexpr auto scatter_or(const X& x, const I& indices, const U& updates) {
  return scatter<ops::scatter_update::logical_or>(x, indices, updates);
}
/// Adds up updates by index.
///
/// Shapes    indices (i...), updates (i..., d...) -> (rows, d...)
template <Tensor I, Tensor X, class Rows>
requires(!Tensor<Rows>) constexpr auto scatter_add(const I& indices, const X& updates,
                                                   const Rows& rows) {
  return dsl_detail::apply_with<dsl_detail::static_extents<Rows>>(
      [](builder& b, const value_id* v, const shape& to) {
        return ops::scatter_add(b, v[0], v[1], to[0]);
      },
      dsl_detail::actual_extents(rows), indices, updates);
}

}  // namespace partita
