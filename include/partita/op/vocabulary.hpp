/// Every op of the language on one page: the functions that append it to a program.
///
/// They are untyped: the typed expressions of dsl/ and the derivative rules of op/ call them.
/// A mistake is recorded in the builder and -1 returned; -1 as operand gives -1.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include <partita/ir/builder.hpp>
#include <partita/op/window.hpp>

namespace partita::ops {

using ints = std::span<const std::int64_t>;

enum class direction : std::uint8_t { eq, ne, lt, le, gt, ge };

// identity.hpp
constexpr value_id parameter(builder& b, std::string_view name, const tensor_type& type);
constexpr value_id tag(builder& b, std::string_view name, value_id x);
constexpr value_id stop_gradient(builder& b, value_id x);
// constant.hpp
constexpr value_id constant(builder& b, const tensor_type& type, double v);
constexpr value_id scalar(builder& b, dtype t, double v);
constexpr value_id integer(builder& b, dtype t, std::int64_t v);
constexpr value_id iota(builder& b, const tensor_type& type, int dim);
// arithmetic.hpp
constexpr value_id add(builder& b, value_id x, value_id y);
constexpr value_id subtract(builder& b, value_id x, value_id y);
constexpr value_id multiply(builder& b, value_id x, value_id y);
constexpr value_id divide(builder& b, value_id x, value_id y);
constexpr value_id maximum(builder& b, value_id x, value_id y);
constexpr value_id minimum(builder& b, value_id x, value_id y);
constexpr value_id negate(builder& b, value_id x);
// math.hpp
constexpr value_id exp(builder& b, value_id x);
constexpr value_id log(builder& b, value_id x);
constexpr value_id tanh(builder& b, value_id x);
constexpr value_id erf(builder& b, value_id x);
constexpr value_id sqrt(builder& b, value_id x);
constexpr value_id rsqrt(builder& b, value_id x);
// select.hpp
constexpr value_id compare(builder& b, direction d, value_id x, value_id y);
constexpr value_id select(builder& b, value_id predicate, value_id x, value_id y);
// convert.hpp
constexpr value_id convert(builder& b, value_id x, dtype to);
// broadcast_in_dim.hpp
constexpr value_id broadcast_in_dim(builder& b, value_id x, const shape& to, ints dims);
// reduce.hpp
constexpr value_id reduce(builder& b, value_id x, combiner combine, ints dims);
// reduce_window.hpp, select_and_scatter.hpp, cumsum.hpp; `w` has one entry per dimension
constexpr value_id reduce_window(builder& b, value_id x, combiner combine,
                                 std::span<const window_dim> w);
constexpr value_id select_and_scatter(builder& b, value_id operand, value_id source,
                                      direction select, std::span<const window_dim> w);
constexpr value_id select_and_gather(builder& b, value_id operand, value_id values,
                                     direction select, std::span<const window_dim> w);
constexpr value_id cumsum(builder& b, value_id x, int dim, bool reverse, bool exclusive);
// transpose.hpp, reshape.hpp
constexpr value_id transpose(builder& b, value_id x, ints permutation);
constexpr value_id reshape(builder& b, value_id x, const shape& to);
// dot_general.hpp
struct dot_dimensions {
  ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
};
constexpr value_id dot_general(builder& b, value_id lhs, value_id rhs, const dot_dimensions& d);
// convolution.hpp
struct convolution_spec {
  ints lhs, rhs, result;  ///< batch, feature, spatial...; rhs: input feature, output feature, ...
  std::span<const window_dim> windows;  ///< per spatial dimension; their sizes are those of rhs
  std::int64_t feature_groups = 1, batch_groups = 1;
};
constexpr value_id convolution(builder& b, value_id lhs, value_id rhs, const convolution_spec& s);
// gather.hpp
constexpr value_id gather(builder& b, value_id table, value_id indices);
constexpr value_id scatter_add(builder& b, value_id indices, value_id updates, std::int64_t rows);
// concatenate.hpp, slice.hpp
constexpr value_id concatenate(builder& b, std::span<const value_id> parts, int dim);
constexpr value_id slice(builder& b, value_id x, ints start, ints limit);

/// Marks, as the limit of a slice, a dimension that is taken whole.
inline constexpr std::int64_t whole = -1;

}  // namespace partita::ops
