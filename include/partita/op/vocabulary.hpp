/// Every op of the language on one page: the functions that append it to a program.
///
/// They are untyped; the typed expressions of dsl/ and the derivative rules of op/ call them. On an
/// error they record it in the builder and return -1. If an operand is -1, they return -1.
#pragma once

#include <initializer_list>
#include <string_view>

#include <partita/ir/builder.hpp>
#include <partita/op/numerics.hpp>
#include <partita/op/window.hpp>

namespace partita {
/// A memory that can hold values (see op::place). Values in host memory use no device memory.
enum class memory_space : std::uint8_t { device, pinned_host, unpinned_host };
}  // namespace partita

namespace partita::ops {

/// Dimensions or extents: `{0, 1}`, an array, a vec. The list is not copied and must outlive the
/// call.
using ints = span<const std::int64_t>;

/// A copied list of at most max_rank entries, for arguments that are built before the call. A
/// longer list becomes a list of invalid dimensions, which the op's shape rule rejects.
template <class T>
class kept {
 public:
  constexpr kept() = default;
  constexpr kept(std::initializer_list<T> list) : kept(list.begin(), list.size()) {}
  template <std::size_t N>
  constexpr kept(const T (&array)[N]) : kept(array, N) {}
  template <class Range>
  requires requires(const Range& r, const T*& p) { p = r.data(); }
  constexpr kept(const Range& r) : kept(r.data(), r.size()) {}
  constexpr kept(const T* data, std::size_t size) : size_(size < max_rank ? size : max_rank) {
    for (std::size_t i = 0; i < size_; ++i) {
      if (size <= max_rank)
        v_[i] = data[i];
      else if constexpr (std::is_same_v<T, std::int64_t>)
        v_[i] = no_dim;
    }
  }

  constexpr operator span<const T>() const { return {v_, size_}; }
  constexpr const T* begin() const { return v_; }
  constexpr const T* end() const { return v_ + size_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](std::size_t i) const { return v_[i]; }

 private:
  T v_[max_rank] = {};
  std::size_t size_ = 0;
};
using kept_ints = kept<std::int64_t>;

enum class direction : std::uint8_t { eq, ne, lt, le, gt, ge };

// identity.hpp
constexpr value_id parameter(builder& b, std::string_view name, const tensor_type& type);
constexpr value_id tag(builder& b, std::string_view name, value_id x);
constexpr value_id stop_gradient(builder& b, value_id x);
constexpr value_id place(builder& b, value_id x, memory_space where);
// constant.hpp
constexpr value_id constant(builder& b, const tensor_type& type, double v);
constexpr value_id scalar(builder& b, dtype t, double v);
constexpr value_id integer(builder& b, dtype t, std::int64_t v);
constexpr value_id iota(builder& b, const tensor_type& type, int dim);
// literal.hpp
constexpr value_id literal(builder& b, const tensor_type& type, ints bits);
// arithmetic.hpp
constexpr value_id add(builder& b, value_id x, value_id y);
constexpr value_id subtract(builder& b, value_id x, value_id y);
constexpr value_id multiply(builder& b, value_id x, value_id y);
constexpr value_id divide(builder& b, value_id x, value_id y);
constexpr value_id remainder(builder& b, value_id x, value_id y);
constexpr value_id negate(builder& b, value_id x);
// extremum.hpp
constexpr value_id maximum(builder& b, value_id x, value_id y);
constexpr value_id minimum(builder& b, value_id x, value_id y);
constexpr value_id clamp(builder& b, value_id low, value_id x, value_id high);
// rounding.hpp
constexpr value_id abs(builder& b, value_id x);
constexpr value_id sign(builder& b, value_id x);
constexpr value_id floor(builder& b, value_id x);
constexpr value_id ceil(builder& b, value_id x);
constexpr value_id round_nearest_even(builder& b, value_id x);
constexpr value_id round_nearest_away(builder& b, value_id x);
// math.hpp
constexpr value_id exp(builder& b, value_id x, const accuracy& how = {});
constexpr value_id expm1(builder& b, value_id x, const accuracy& how = {});
constexpr value_id log(builder& b, value_id x, const accuracy& how = {});
constexpr value_id log1p(builder& b, value_id x, const accuracy& how = {});
constexpr value_id logistic(builder& b, value_id x, const accuracy& how = {});
constexpr value_id tanh(builder& b, value_id x, const accuracy& how = {});
constexpr value_id erf(builder& b, value_id x);
// special.hpp
constexpr value_id erfc(builder& b, value_id x);
constexpr value_id erf_inv(builder& b, value_id x);
constexpr value_id lgamma(builder& b, value_id x);
constexpr value_id digamma(builder& b, value_id x);
// power.hpp
constexpr value_id power(builder& b, value_id x, value_id y);
constexpr value_id sqrt(builder& b, value_id x, const accuracy& how = {});
constexpr value_id rsqrt(builder& b, value_id x, const accuracy& how = {});
constexpr value_id cbrt(builder& b, value_id x, const accuracy& how = {});
// trigonometry.hpp
constexpr value_id sine(builder& b, value_id x, const accuracy& how = {});
constexpr value_id cosine(builder& b, value_id x, const accuracy& how = {});
constexpr value_id tan(builder& b, value_id x, const accuracy& how = {});
constexpr value_id atan2(builder& b, value_id y, value_id x);
// logical.hpp
constexpr value_id logical_and(builder& b, value_id x, value_id y);
constexpr value_id logical_or(builder& b, value_id x, value_id y);
constexpr value_id logical_xor(builder& b, value_id x, value_id y);
constexpr value_id logical_not(builder& b, value_id x);
constexpr value_id popcnt(builder& b, value_id x);
constexpr value_id count_leading_zeros(builder& b, value_id x);
// shift.hpp
constexpr value_id shift_left(builder& b, value_id x, value_id by);
constexpr value_id shift_right_arithmetic(builder& b, value_id x, value_id by);
constexpr value_id shift_right_logical(builder& b, value_id x, value_id by);
// select.hpp
constexpr value_id compare(builder& b, direction d, value_id x, value_id y);
constexpr value_id is_finite(builder& b, value_id x);
constexpr value_id select(builder& b, value_id predicate, value_id x, value_id y);
// random.hpp
constexpr value_id random_bits(builder& b, value_id key, value_id counter);
// convert.hpp
constexpr value_id convert(builder& b, value_id x, dtype to);
// bitcast_convert.hpp, reduce_precision.hpp
constexpr value_id bitcast_convert(builder& b, value_id x, dtype to);
constexpr value_id reduce_precision(builder& b, value_id x, std::int64_t exponent_bits,
                                    std::int64_t mantissa_bits);
// broadcast_in_dim.hpp
constexpr value_id broadcast_in_dim(builder& b, value_id x, const shape& to, ints dims);
// reduce.hpp
constexpr value_id reduce(builder& b, value_id x, combiner combine, ints dims);
/// Reductions of values with positions. The numbers follow those of the combiners.
enum class extreme : std::uint8_t { argmax = 7, argmin = 8 };
/// Returns the extreme value; the next value is its position.
constexpr value_id reduce(builder& b, value_id x, value_id positions, extreme which, ints dims);
// reduce_window.hpp, select_and_scatter.hpp, cumsum.hpp; `w` has one entry per dimension
constexpr value_id reduce_window(builder& b, value_id x, combiner combine,
                                 span<const window_dim> w);
constexpr value_id select_and_scatter(builder& b, value_id operand, value_id source,
                                      direction select, span<const window_dim> w);
constexpr value_id select_and_gather(builder& b, value_id operand, value_id values,
                                     direction select, span<const window_dim> w);
constexpr value_id cumsum(builder& b, value_id x, int dim, bool reverse, bool exclusive,
                          combiner combine = combiner::add);
// transpose.hpp, reshape.hpp
constexpr value_id transpose(builder& b, value_id x, ints permutation);
constexpr value_id reshape(builder& b, value_id x, const shape& to);
// dot_general.hpp
struct dot_dimensions {
  kept_ints lhs_batch = {}, rhs_batch = {}, lhs_contract = {}, rhs_contract = {};
  product_precision exactness = {};
};
constexpr value_id dot_general(builder& b, value_id lhs, value_id rhs, const dot_dimensions& d);
// gather.hpp, scatter.hpp
/// Dimension numbers of gather. StableHLO's names for scatter are in brackets where they differ.
struct gather_dimensions {
  kept_ints offset_dims = {};                  ///< (update_window_dims)
  kept_ints collapsed_slice_dims = {};         ///< (inserted_window_dims)
  kept_ints operand_batching_dims = {};        ///< (input_batching_dims)
  kept_ints start_indices_batching_dims = {};  ///< (scatter_indices_batching_dims)
  kept_ints start_index_map = {};              ///< (scatter_dims_to_operand_dims)
  std::int64_t index_vector_dim = 0;
};
/// How an update changes the element at its position. The numbers are those of the combiners.
enum class scatter_update : std::uint8_t {
  assign,
  add,
  max,
  min,
  multiply,
  logical_and,  ///< logical for i1, bitwise for integers
  logical_or
};
constexpr value_id gather(builder& b, value_id operand, value_id indices,
                          const gather_dimensions& d, ints slice_sizes);
// convolution.hpp
struct convolution_spec {
  /// Dimensions of lhs and result: batch, feature, spatial...; of rhs: input feature, output
  /// feature, spatial...
  kept_ints lhs = {}, rhs = {}, result = {};
  kept<window_dim> windows = {};  ///< per spatial dimension; the sizes come from rhs
  std::int64_t feature_groups = 1, batch_groups = 1;
  product_precision exactness = {};  ///< (without an algorithm)
};
constexpr value_id convolution(builder& b, value_id lhs, value_id rhs, const convolution_spec& s);
// gather.hpp
constexpr value_id gather(builder& b, value_id table, value_id indices);
constexpr value_id scatter(builder& b, scatter_update update, value_id input, value_id indices,
                           value_id updates, const gather_dimensions& d);
constexpr value_id scatter(builder& b, scatter_update update, const shape& to, value_id indices,
                           value_id updates, const gather_dimensions& d);
constexpr value_id scatter_rows(builder& b, scatter_update update, value_id input, value_id indices,
                                value_id updates);
constexpr value_id scatter_add(builder& b, value_id indices, value_id updates, std::int64_t rows);
// concatenate.hpp, slice.hpp, pad.hpp, reverse.hpp, roll.hpp
constexpr value_id concatenate(builder& b, span<const value_id> parts, int dim);
constexpr value_id slice(builder& b, value_id x, ints start, ints limit, ints strides = {});
constexpr value_id pad(builder& b, value_id x, value_id value, ints low, ints high,
                       ints interior = {});
constexpr value_id reverse(builder& b, value_id x, ints dims);
constexpr value_id roll(builder& b, value_id x, int dim, std::int64_t shift);
// shifts.hpp: each returns the equivalent shift, or -1 if there is none
constexpr value_id slice_of_pad(builder& b, value_id x, ints start, ints limit);
constexpr value_id pad_of_slice(builder& b, value_id x, value_id value, ints low, ints high,
                                ints interior);
constexpr value_id roll_of_slices(builder& b, span<const value_id> parts, int dim);
constexpr value_id pad_of_constants(builder& b, span<const value_id> parts, int dim);
// dynamic_slice.hpp
constexpr value_id dynamic_slice(builder& b, value_id x, span<const value_id> starts, ints sizes);
constexpr value_id dynamic_update_slice(builder& b, value_id x, value_id update,
                                        span<const value_id> starts);

// fold.hpp
/// `f` is a program of n + n scalars that returns n. `identities` are as `constant` stores them, or
/// empty.
constexpr value_id fold(builder& b, span<const value_id> operands, ints dims, ints identities,
                        bool commutes, const program& f);
// sort.hpp
constexpr value_id sort(builder& b, span<const value_id> operands, int dim, int keys,
                        bool descending);
constexpr value_id top_k(builder& b, value_id x, std::int64_t k);
// while_loop.hpp, scan.hpp, case_of.hpp, call.hpp, optimization_barrier.hpp
constexpr value_id while_loop(builder& b, span<const value_id> carried, program&& condition,
                              program&& body);
constexpr value_id scan(builder& b, std::int64_t length, bool reversed,
                        span<const value_id> constants, span<const value_id> carried,
                        span<const value_id> sliced, program&& body);
constexpr value_id case_of(builder& b, value_id index, span<const value_id> arguments,
                           vec<program>&& branches);
constexpr value_id call(builder& b, std::string_view name, span<const value_id> arguments,
                        program&& f);
constexpr value_id optimization_barrier(builder& b, span<const value_id> values);
// linalg.hpp
struct triangular_options {
  bool left_side = true, lower = true, unit_diagonal = false, transpose_a = false;
};
constexpr value_id cholesky(builder& b, value_id a, bool lower);
constexpr value_id triangular_solve(builder& b, value_id a, value_id x,
                                    const triangular_options& o);

/// The full extent of a dimension: as the limit of a slice (its end), or as a size of dynamic_slice
/// or gather.
inline constexpr std::int64_t whole = -1;

}  // namespace partita::ops
