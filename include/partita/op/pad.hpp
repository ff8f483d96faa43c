/// pad: adds a value around and between the elements.
#pragma once

#include <partita/op/vocabulary.hpp>
#include <partita/op/window.hpp>

namespace partita::op {

/// Turns dimension d into low[d] values, then the elements with interior[d] values between
/// neighbours, then high[d] values. Negative low and high remove elements (and the values between
/// them). Attributes: low, high, interior, one number per dimension each.
///
/// Shapes    x (n...), value () -> (low + n + max(n - 1, 0) * interior + high, ...)
/// Tile map  ([i, j~], [], low=[0, 2], high=[0, -2]) -> ([i, j])
/// Errors    S102 element types differ, S118 an amount is more than 2^59 - 1, S131 low, high and
///           interior do not have one number per dimension, S132 negative interior, S133 value is
///           not a scalar, S134 negative result extent
struct pad {
  static constexpr std::string_view name = "pad";
  static constexpr fusion_kind fusion = fusion_kind::loop;
  static constexpr int operand_count = 2;
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    const int rank = f.operands[0].shape.rank;
    f.list("low", rank);
    f.list("high", rank);
    f.list_or("interior", rank, 0);
  }
  static constexpr void infer(infer_context& c) {
    const auto& x = c.operands[0];
    const auto& value = c.operands[1];
    const auto rank = static_cast<std::size_t>(x.shape.rank);
    c.result = x;
    if (x.element != value.element)
      return c.fail("S102", "pad: element types ", name_of(x.element), " and ",
                    name_of(value.element), " differ; use convert");
    if (value.shape.rank != 0)
      return c.fail("S133", "pad: the padding value ", value, " is not a scalar");
    if (c.attrs.size() != 3 * rank)
      return c.fail("S131", "pad: ", c.attrs.size(), " amounts for ", x, "; ", 3 * rank,
                    " are needed");
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t low = c.attrs[d], high = c.attrs[rank + d],
                         interior = c.attrs[2 * rank + d];
      auto& extent = c.result.shape[static_cast<int>(d)];
      if (interior < 0)
        return c.fail("S132", "pad: interior padding ", interior, " of dimension ", d, " of ", x,
                      " is negative");
      for (const std::int64_t amount : {low, high, interior})
        if (amount > max_elements || amount < -max_elements)
          return c.fail("S118", "pad: amount ", amount, " of dimension ", d, " of ", x,
                        " is out of range; a tensor has at most 2^59 - 1 elements");
      if (extent == dyn) continue;
      const checked size =
          checked(extent) + low + high + checked(extent > 0 ? extent - 1 : 0) * interior;
      extent = size.value_or(saturated);  // S118
      if (extent < 0)
        return c.fail("S134", "pad: low ", low, ", high ", high, " and interior ", interior,
                      " give dimension ", d, " of ", x, " the size ", extent);
    }
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d)
      window_factor(c, window_of(c.attrs, c.result.shape.rank, d), d);
  }
  /// Returns the window of dimension d: each result position is a window of one element in the
  /// dilated and padded operand.
  static constexpr window_dim window_of(const std::int64_t* attrs, int rank, int d) {
    window_dim w;
    w.low = attrs[d];
    w.high = attrs[rank + d];
    w.base_dilation = attrs[2 * rank + d] + 1;
    return w;
  }
  static constexpr void halo(halo_context& c) {
    const int rank = c.result.shape.rank, d = c.result_dim;
    window_dim local;
    c.possible = window_of(c.attrs.data(), rank, d)
                     .cut(c.operand_extent(0), c.result.shape[d], c.pieces, c.ranges[0], local);
    c.ranges[0].fill_operand = 1;
    c.attrs[d] = local.low;
    c.attrs[rank + d] = local.high;
    c.identity = true;
    for (auto amount : c.attrs) c.identity = c.identity && amount == 0;
  }
  /// Handles an operand padded for uneven shards: the padding of x holds the op's padding value, if
  /// the op pads at all.
  static constexpr void stretch(halo_context& c) {
    const int rank = c.result.shape.rank, d = c.result_dim;
    const window_dim w = window_of(c.attrs.data(), rank, d);
    const bool pads = w.low > 0 || w.high > 0 || w.base_dilation > 1;
    c.ranges[0].fill = pads ? combiner::add : combiner::stack;
    if (pads) c.ranges[0].fill_operand = 1;
    c.apart = w.base_dilation == 1;
    c.attrs[rank + d] = w.high_for(c.operand_extent(0), c.result.shape[d]);
  }
  /// The cotangent of x is the result's cotangent at its elements. The cotangent of the value is
  /// the sum over all other positions.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const tensor_type from = b.type(b.p.operand(c.op, 0));
    const auto attrs = b.p.attrs(c.op);
    const vec<std::int64_t> amounts(attrs.data(), attrs.data() + attrs.size());
    const auto rank = static_cast<std::size_t>(from.shape.rank);
    const ops::ints low{amounts.data(), rank}, high{amounts.data() + rank, rank},
        interior{amounts.data() + 2 * rank, rank};
    const value_id zero = ops::scalar(b, from.element, 0);
    if (c.wanted[0]) {
      std::int64_t start[max_rank] = {}, limit[max_rank] = {}, stride[max_rank] = {};
      std::int64_t less_low[max_rank] = {}, less_high[max_rank] = {};
      for (std::size_t d = 0; d < rank; ++d) {
        limit[d] = ops::whole;
        stride[d] = interior[d] + 1;
        less_low[d] = -low[d];
        less_high[d] = -high[d];
      }
      const value_id g = ops::pad(b, c.cotangent, zero, {less_low, rank}, {less_high, rank});
      c.operands[0] = ops::slice(b, g, {start, rank}, {limit, rank}, {stride, rank});
    }
    if (c.wanted[1]) {
      const value_id inside = ops::constant(b, {dtype::boolean, from.shape}, 0);
      const value_id padded =
          ops::pad(b, inside, ops::scalar(b, dtype::boolean, 1), low, high, interior);
      std::int64_t all[max_rank] = {};
      for (std::size_t d = 0; d < rank; ++d) all[d] = static_cast<std::int64_t>(d);
      c.operands[1] =
          ops::reduce(b, ops::select(b, padded, c.cotangent, zero), combiner::add, {all, rank});
    }
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::pad)
}  // namespace partita

namespace partita::ops {

/// Emits a pad. Returns the operand itself if all amounts are 0, and may pad the source of a slice
/// directly (shifts.hpp). Omitted interior amounts are 0.
constexpr value_id pad(builder& b, value_id x, value_id value, ints low, ints high, ints interior) {
  if (x < 0) return -1;
  vec<std::int64_t> attrs;
  bool none = true;
  for (ints part : {low, high, interior})
    for (auto amount : part) {
      attrs.push_back(amount);
      none = none && amount == 0;
    }
  if (interior.empty()) attrs.resize(attrs.size() + low.size(), 0);
  if (none && static_cast<int>(low.size()) == b.type(x).shape.rank && low.size() == high.size() &&
      value >= 0 && b.type(value).shape.rank == 0)
    return x;
  if (value >= 0)
    if (const value_id shifted = pad_of_slice(b, x, value, low, high, interior); shifted >= 0)
      return shifted;
  const value_id operands[] = {x, value};
  return b.emit(def<op::pad>, operands, {attrs.data(), attrs.size()});
}

}  // namespace partita::ops
