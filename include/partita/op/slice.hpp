/// slice: a contiguous box.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Elements start[d] <= i < limit[d] of every dimension. Attributes: starts, then limits; the limit
/// of a dimension that is taken whole is `ops::whole`, and only such a dimension is parallel.
///
/// Tile map  ([i, 8], limits=[whole, 5]) -> ([i, 5])
/// Errors    S115 bounds out of range
struct slice {
  static constexpr std::string_view name = "slice";
  static constexpr void infer(infer_context& c) {
    const shape& from = c.operands[0].shape;
    c.result = c.operands[0];
    const auto rank = static_cast<std::size_t>(from.rank);
    if (c.attrs.size() != 2 * rank)
      return c.fail("S115", "slice: ", c.attrs.size() / 2, " bounds for ", c.operands[0]);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t start = c.attrs[d], limit = c.attrs[rank + d];
      const std::int64_t extent = from[static_cast<int>(d)];
      if (limit == ops::whole && start == 0) continue;
      if (start < 0 || limit < start || (extent != dyn && limit > extent))
        return c.fail("S115", "slice: bounds [", start, ", ", limit,
                      ") are out of range for dimension ", d, " of ", c.operands[0]);
      c.result.shape[static_cast<int>(d)] = limit - start;
    }
  }
  static constexpr void tile_map(tile_map_context& c) {
    const int rank = c.result.shape.rank;
    for (int d = 0; d < rank; ++d)
      if (c.attrs[rank + d] == ops::whole) c.tile(c.result.shape[d], d).operand(0, d);
  }
  /// The cotangent between blocks of zeros.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const tensor_type from = b.type(b.p.operand(c.op, 0));
    value_id g = c.cotangent;
    for (int d = 0; d < from.shape.rank; ++d) {
      const auto attrs = b.p.attrs(c.op);
      const std::int64_t start = attrs[static_cast<std::size_t>(d)];
      const std::int64_t limit = attrs[static_cast<std::size_t>(from.shape.rank + d)];
      if (limit == ops::whole) continue;
      value_id parts[3] = {};
      std::size_t count = 0;
      tensor_type zeros = b.type(g);
      zeros.shape[d] = start;
      if (start > 0) parts[count++] = ops::constant(b, zeros, 0);
      parts[count++] = g;
      zeros.shape[d] = from.shape[d] - limit;
      if (zeros.shape[d] > 0) parts[count++] = ops::constant(b, zeros, 0);
      g = ops::concatenate(b, {parts, count}, d);
    }
    c.operands[0] = g;
  }
  static constexpr void print(print_context& c) {
    const auto a = c.p.attrs(c.op);
    const auto rank = a.size() / 2;
    c.out << " {[";
    append_list(c.out, static_cast<int>(rank), [&](int i) {
      const auto d = static_cast<std::size_t>(i);
      if (a[rank + d] == ops::whole)
        c.out << ':';
      else
        c.out << a[d] << ':' << a[rank + d];
    });
    c.out << "]}";
  }
};

}  // namespace partita::op

namespace partita::ops {

/// A dimension whose bounds are its ends is taken as whole; the operand itself if all are.
constexpr value_id slice(builder& b, value_id x, ints start, ints limit) {
  if (x < 0) return -1;
  std::int64_t attrs[2 * max_rank] = {};
  std::size_t count = 0;
  const shape& from = b.type(x).shape;
  bool all = static_cast<int>(limit.size()) == from.rank;
  for (auto s : start) attrs[count++] = s;
  for (std::size_t d = 0; d < limit.size(); ++d) {
    const bool full = static_cast<int>(d) < from.rank && start[d] == 0 &&
                      (limit[d] == whole || limit[d] == from[static_cast<int>(d)]);
    all = all && full;
    attrs[count++] = full ? whole : limit[d];
  }
  if (all) return x;
  const value_id operands[] = {x};
  return b.emit(def<op::slice>, operands, {attrs, count});
}

}  // namespace partita::ops
