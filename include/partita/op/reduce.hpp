/// reduce: combines all elements along some dimensions.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Attributes: the combiner (add, max or min), then the dimensions, strictly increasing. The
/// dimensions disappear. Without dimensions the operand is returned as it is. An empty dimension
/// gives the identity of the combiner (0, -inf, inf; for integers the least and greatest value).
///
/// Tile map  ([i, j]) -> ([i])  reduce={j:add}
/// Errors    S104 not a number, S110 bad dimensions or combiner
struct reduce {
  static constexpr std::string_view name = "reduce";
  static constexpr int operand_count = 1;
  static constexpr bool reduced(const std::int64_t* attrs, int count, int dim) {
    for (int i = 1; i < count; ++i)
      if (attrs[i] == dim) return true;
    return false;
  }
  static constexpr void infer(infer_context& c) {
    const shape& from = c.operands[0].shape;
    if (c.operands[0].element == dtype::boolean)
      c.fail("S104", "reduce: element type i1 is not a number");
    if (c.attrs.empty() || c.attrs[0] < static_cast<std::int64_t>(combiner::add) ||
        c.attrs[0] > static_cast<std::int64_t>(combiner::min))
      return c.fail("S110", "reduce: the combiner is none of add, max and min");
    std::int64_t previous = -1;
    for (std::size_t i = 1; i < c.attrs.size(); ++i) {
      if (c.attrs[i] <= previous || c.attrs[i] >= from.rank)
        return c.fail("S110", "reduce: dimension ", c.attrs[i],
                      " is out of order or out of range for ", c.operands[0]);
      previous = c.attrs[i];
    }
    c.result.element = c.operands[0].element;
    for (int d = 0; d < from.rank; ++d)
      if (!reduced(c.attrs.data(), static_cast<int>(c.attrs.size()), d))
        c.result.shape.push_back(from[d]);
  }
  static constexpr void tile_map(tile_map_context& c) {
    const auto combine = static_cast<combiner>(c.attrs[0]);
    int kept = 0;
    for (int d = 0; d < c.operands[0].shape.rank; ++d) {
      if (reduced(c.attrs, c.attr_count, d))
        c.reduce(c.operands[0].shape[d], combine);
      else
        c.tile(c.operands[0].shape[d], kept++);
      c.operand(0, d);
    }
  }
  /// add: the cotangent, repeated. max, min: shared equally among the elements that reach it.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const value_id x = b.p.operand(c.op, 0), y = b.p.op(c.op).result;
    const auto attrs = b.p.attrs(c.op);
    const shape to = b.type(x).shape;
    std::int64_t kept[max_rank] = {}, summed[max_rank] = {};
    std::size_t count = 0, summed_count = attrs.size() - 1;
    for (std::size_t i = 0; i < summed_count; ++i) summed[i] = attrs[i + 1];
    for (int d = 0; d < to.rank; ++d)
      if (!reduced(attrs.data(), static_cast<int>(attrs.size()), d)) kept[count++] = d;
    const ops::ints dims{kept, count};
    if (static_cast<combiner>(attrs[0]) == combiner::add) {
      c.operands[0] = ops::broadcast_in_dim(b, c.cotangent, to, dims);
      return;
    }
    const value_id hit =
        ops::compare(b, ops::direction::eq, x, ops::broadcast_in_dim(b, y, to, dims));
    const dtype t = b.type(x).element;
    const value_id ties =
        ops::reduce(b, ops::convert(b, hit, t), combiner::add, {summed, summed_count});
    const value_id share = ops::divide(b, c.cotangent, ties);
    c.operands[0] =
        ops::select(b, hit, ops::broadcast_in_dim(b, share, to, dims), ops::scalar(b, t, 0));
  }
  static constexpr std::int64_t flops(const cost_context& c) {
    return c.operands[0].shape.elements();
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.word("", {"stack", "add", "max", "min"});
    f.rest("dims");
  }
};

}  // namespace partita::op

namespace partita::ops {

constexpr value_id reduce(builder& b, value_id x, combiner combine, ints dims) {
  if (dims.empty()) return x;
  std::int64_t attrs[max_rank + 1] = {static_cast<std::int64_t>(combine)};
  std::size_t count = 1;
  for (auto d : dims)
    if (count <= max_rank) attrs[count++] = d;
  const value_id operands[] = {x};
  return b.emit(def<op::reduce>, operands, {attrs, count});
}

}  // namespace partita::ops
