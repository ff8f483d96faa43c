/// The gradient of running products, maxima and minima (op/cumsum.hpp), in few ops for any extent
/// of the dimension.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Computes the cotangent of x from the cotangent of its running products, maxima or minima along
/// `dim` (from the other end if `reverse`). The running results are inclusive: result i contains
/// element i. Shapes: all as x's.
///
/// Cost: for n elements along the dimension, products take log2(n) steps of shifts.
class running_cotangent {
 public:
  constexpr running_cotangent(builder& b, value_id x, value_id cotangent, int dim, bool reverse)
      : b_(b), x_(x), cotangent_(cotangent), type_(b.type(x)), dim_(dim), reverse_(reverse) {}

  constexpr value_id of(combiner c) const {
    if (type_.shape.elements() == 0) return -1;
    return c == combiner::multiply ? of_products() : of_extremes(c);
  }
  /// Shifts x by d elements along `dim`, so that position i holds element i + d; positions without
  /// one hold 0.
  static constexpr value_id ahead(builder& b, value_id x, int dim, std::int64_t d) {
    if (b.failed() || x < 0) return -1;
    const auto rank = static_cast<std::size_t>(b.type(x).shape.rank);
    std::int64_t low[max_rank] = {}, high[max_rank] = {}, interior[max_rank] = {};
    low[dim] = -d;
    high[dim] = d;
    const value_id value = ops::constant(b, {b.type(x).element, {}}, 0);
    return ops::pad(b, x, value, {low, rank}, {high, rank}, {interior, rank});
  }

 private:
  /// The cotangent of element i is x[0] ... x[i-1] s[i], where s[i] = g[i] + x[i+1] s[i+1]. This
  /// recurrence takes steps of 1, 2, 4, ... elements, two shifts each. It does not divide, so zeros
  /// are handled exactly.
  constexpr value_id of_products() const {
    const std::int64_t n = type_.shape[dim_];
    value_id sums = cotangent_, factors = n > 1 ? ahead(x_, 1) : -1;
    for (std::int64_t d = 1; d < n; d *= 2) {
      const value_id more = ops::multiply(b_, factors, ahead(sums, d));
      sums = ops::add(b_, sums, ops::select(b_, has_ahead(d), more, ops::constant(b_, type_, 0)));
      if (2 * d < n) factors = ops::multiply(b_, factors, ahead(factors, d));
    }
    return ops::multiply(b_, before(combiner::multiply), sums);
  }
  /// Sends each cotangent to the element that was the extreme at its position: the last one so far
  /// that no earlier element equals.
  constexpr value_id of_extremes(combiner c) const {
    const auto reached = c == combiner::max ? ops::direction::ge : ops::direction::le;
    const value_id found = ops::compare(b_, reached, before(c), x_);
    const value_id first =
        ops::constant(b_, positions(), static_cast<double>(reverse_ ? type_.shape[dim_] - 1 : 0));
    const value_id candidates = ops::select(b_, found, first, ops::iota(b_, positions(), dim_));
    const value_id at = ops::cumsum(b_, candidates, dim_, reverse_, false,
                                    reverse_ ? combiner::min : combiner::max);
    return scattered(at);
  }
  constexpr value_id scattered(value_id at) const {
    const int rank = type_.shape.rank;
    std::int64_t others[max_rank] = {};
    std::size_t count = 0;
    for (int d = 0; d < rank; ++d)
      if (d != dim_) others[count++] = d;
    const std::int64_t along[] = {dim_};
    return ops::scatter(b_, ops::scatter_update::add, type_.shape, at, cotangent_,
                        {{}, along, {others, count}, {others, count}, along, rank});
  }

  constexpr value_id before(combiner c) const {
    return ops::cumsum(b_, x_, dim_, reverse_, true, c);
  }
  constexpr value_id ahead(value_id x, std::int64_t d) const {
    return ahead(b_, x, dim_, reverse_ ? -d : d);
  }
  /// Returns a mask: true for elements with another one d positions ahead.
  constexpr value_id has_ahead(std::int64_t d) const {
    const std::int64_t limit = reverse_ ? d : type_.shape[dim_] - 1 - d;
    return ops::compare(b_, reverse_ ? ops::direction::ge : ops::direction::le,
                        ops::iota(b_, positions(), dim_),
                        ops::constant(b_, positions(), static_cast<double>(limit)));
  }
  constexpr tensor_type positions() const { return {dtype::i64, type_.shape}; }

  builder& b_;
  value_id x_, cotangent_;
  tensor_type type_;
  int dim_;
  bool reverse_;
};

}  // namespace partita::op
