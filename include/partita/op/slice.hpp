/// slice: a box of elements, with optional strides.
#pragma once

#include <partita/op/pad.hpp>
#include <partita/op/vocabulary.hpp>
#include <partita/op/window.hpp>
#include <partita/support/scanner.hpp>

namespace partita::op {

/// Returns elements start[d], start[d] + stride[d], ... below limit[d] of every dimension.
/// Attributes: starts, limits, then strides, which are omitted if all are 1. The limit `ops::whole`
/// is the end of the dimension; with start 0 and stride 1 it means the full extent. Prints as `{[:,
/// 2:5, 0:8:2]}`.
///
/// Tile map  ([i, j~], starts=[0, 2], limits=[whole, 6]) -> ([i, j]), in a number of shards that
///           divides both extents
/// Padded    a slice that reaches into the padding becomes a `pad`
/// Errors    S115 bounds out of range, S118 a stride above 2^59 - 1, S130 a stride below 1
struct slice {
  static constexpr std::string_view name = "slice";
  static constexpr bool reads_part = true;
  static constexpr fusion_kind fusion = fusion_kind::loop;
  static constexpr int operand_count = 1;

  /// The bounds of one dimension; `limit` may be `ops::whole`.
  struct bounds {
    std::int64_t start, limit, stride;
    constexpr bounds(const std::int64_t* attrs, std::size_t count, int rank, int dim)
        : start(attrs[dim]),
          limit(attrs[rank + dim]),
          stride(count > static_cast<std::size_t>(2 * rank) ? attrs[2 * rank + dim] : 1) {}
    constexpr bool whole() const { return start == 0 && limit == ops::whole && stride == 1; }
  };

  static constexpr void infer(infer_context& c) {
    const shape& from = c.operands[0].shape;
    c.result = c.operands[0];
    const auto rank = static_cast<std::size_t>(from.rank);
    if (c.attrs.size() != 2 * rank && c.attrs.size() != 3 * rank)
      return c.fail("S115", "slice: ", c.attrs.size() / 2, " bounds for ", c.operands[0]);
    for (int d = 0; d < from.rank; ++d) {
      const bounds at(c.attrs.data(), c.attrs.size(), from.rank, d);
      const std::int64_t limit = at.limit == ops::whole ? from[d] : at.limit;
      if (at.stride < 1)
        return c.fail("S130", "slice: stride ", at.stride, " of dimension ", d, " of ",
                      c.operands[0], " is below 1");
      if (at.stride > max_elements)
        return c.fail("S118", "slice: stride ", at.stride, " of dimension ", d, " of ",
                      c.operands[0], " is out of range; a tensor has at most 2^59 - 1 elements");
      if (at.start < 0 ||
          (limit != dyn && (limit < at.start || (from[d] != dyn && limit > from[d]))))
        return c.fail("S115", "slice: bounds [", at.start, ", ", limit,
                      ") are out of range for dimension ", d, " of ", c.operands[0]);
      if (limit == dyn)
        c.result.shape[d] = dyn;
      else
        c.result.shape[d] = limit > at.start ? (limit - at.start - 1) / at.stride + 1 : 0;
    }
  }
  static constexpr void tile_map(tile_map_context& c) {
    const int rank = c.result.shape.rank;
    for (int d = 0; d < rank; ++d)
      window_factor(c, window_of(bounds(c.attrs, static_cast<std::size_t>(c.attr_count), rank, d)),
                    d);
  }
  /// Returns the window: each result position is a window of one element. Elements after the last
  /// one do not matter.
  static constexpr window_dim window_of(const bounds& at) {
    window_dim w;
    w.low = -at.start;
    w.high = at.limit == ops::whole ? 0 : -1;
    w.stride = at.stride;
    return w;
  }
  static constexpr void halo(halo_context& c) {
    const int rank = c.result.shape.rank, d = c.result_dim;
    window_dim local;
    c.possible = window_of(bounds(c.attrs.data(), c.attrs.size(), rank, d))
                     .cut(c.operand_extent(0), c.result.shape[d], c.pieces, c.ranges[0], local);
    c.attrs[d] = 0;
    c.attrs[rank + d] = ops::whole;
    c.identity = true;
    for (int each = 0; each < rank; ++each)
      c.identity = c.identity && bounds(c.attrs.data(), c.attrs.size(), rank, each).whole();
  }
  /// Handles an operand padded for uneven shards: result positions past the old end read existing
  /// elements, or zeros.
  static constexpr void stretch(halo_context& c) {
    const int rank = c.result.shape.rank, d = c.result_dim;
    const bounds at(c.attrs.data(), c.attrs.size(), rank, d);
    const std::int64_t limit = at.start + window_dim::span(c.result.shape[d], at.stride);
    c.ranges[0].fill = combiner::stack;
    c.apart = takes_all_between(c);
    if (c.apart && limit > c.operand_extent(0)) return become_pad(c);
    c.possible =
        c.apart || (limit <= c.operand_extent(0) &&
                    saturating_multiply(c.result.shape[d], at.stride) <= c.operand_extent(0));
    c.attrs[rank + d] = limit;
  }
  static constexpr bool takes_all_between(const halo_context& c) {
    const int rank = c.result.shape.rank;
    for (int d = 0; d < rank; ++d)
      if (bounds(c.attrs.data(), c.attrs.size(), rank, d).stride != 1) return false;
    return true;
  }
  /// Turns the slice into a pad, which removes or adds elements at the ends.
  static constexpr void become_pad(halo_context& c) {
    const int rank = c.result.shape.rank;
    vec<std::int64_t> amounts(static_cast<std::size_t>(3 * rank), 0);
    for (int d = 0; d < rank; ++d) {
      const std::int64_t start = c.attrs[d];
      amounts[d] = -start;
      amounts[rank + d] = c.result.shape[d] - (c.operands[0].shape[d] - start);
    }
    c.attrs = amounts;
    c.becomes = &def<op::pad>;
  }
  /// Pads the cotangent with zeros.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const shape from = b.type(b.p.operand(c.op, 0)).shape, to = b.type(c.cotangent).shape;
    const auto attrs = b.p.attrs(c.op);
    std::int64_t low[max_rank] = {}, high[max_rank] = {}, interior[max_rank] = {};
    for (int d = 0; d < from.rank; ++d) {
      const bounds at(attrs.data(), attrs.size(), from.rank, d);
      if (at.whole()) continue;
      low[d] = at.start;
      high[d] = from[d] - at.start;
      if (to[d] == 0) continue;
      interior[d] = at.stride - 1;
      high[d] -= (to[d] - 1) * at.stride + 1;
    }
    const auto rank = static_cast<std::size_t>(from.rank);
    c.operands[0] = ops::pad(b, c.cotangent, ops::scalar(b, b.type(c.cotangent).element, 0),
                             {low, rank}, {high, rank}, {interior, rank});
  }
  static constexpr std::int64_t bytes(const cost_context& c) {
    return saturating_multiply(2, c.result.bytes());
  }

  static constexpr void print(print_context& c) {
    const auto a = c.p.attrs(c.op);
    const int rank = c.p.type(c.p.operand(c.op, 0)).shape.rank;
    c.out << " {[";
    append_list(c.out, rank, [&](int d) {
      const bounds at(a.data(), a.size(), rank, d);
      if (at.start != 0 || at.limit != ops::whole) c.out << at.start;
      c.out << ':';
      if (at.limit != ops::whole) c.out << at.limit;
      if (at.stride != 1) c.out << ':' << at.stride;
    });
    c.out << "]}";
  }
  static constexpr void parse(parse_context& c) {
    scanner in(c.in);
    const int rank = c.operands[0].shape.rank;
    vec<std::int64_t> starts, limits, strides;
    bool good = in.accept("["), strided = false;
    const auto number = [&](std::int64_t usual) {
      std::int64_t v = usual;
      if (in.starts_with(scanner::is_digit)) good = in.integer(v) && good;
      return v;
    };
    for (int d = 0; good && d < rank; ++d) {
      good = d == 0 || in.accept(", ");
      starts.push_back(number(0));
      good = good && in.accept(":");
      limits.push_back(number(ops::whole));
      strides.push_back(in.accept(":") ? number(0) : 1);
      strided = strided || strides.back() != 1;
    }
    if (!good || !in.accept("]") || !in.done())
      return c.error.record("P011", "parse: attributes of slice: \"", c.in,
                            "\" are not bounds of the ", rank, " dimensions of ", c.operands[0]);
    c.attrs.insert_back(starts.begin(), starts.end());
    c.attrs.insert_back(limits.begin(), limits.end());
    if (strided) c.attrs.insert_back(strides.begin(), strides.end());
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::slice)
}  // namespace partita

namespace partita::ops {

/// Emits a slice. Bounds that cover a dimension are stored as `whole`. Returns the operand itself
/// if all dimensions are covered, and a pad if the slice of a pad is one (shifts.hpp). Omitted
/// strides are 1.
constexpr value_id slice(builder& b, value_id x, ints start, ints limit, ints strides) {
  if (x < 0) return -1;
  const shape from = b.type(x).shape;
  vec<std::int64_t> attrs(start.data(), start.data() + start.size());
  bool all = static_cast<int>(limit.size()) == from.rank, strided = false;
  for (auto s : strides) strided = strided || s != 1;
  for (std::size_t d = 0; d < limit.size(); ++d) {
    const bool full = static_cast<int>(d) < from.rank && start[d] == 0 &&
                      (limit[d] == whole || limit[d] == from[static_cast<int>(d)]);
    all = all && full;
    attrs.push_back(full ? whole : limit[d]);
  }
  if (all && !strided) return x;
  if (strided) attrs.insert_back(strides.begin(), strides.end());
  if (!strided)
    if (const value_id shifted = slice_of_pad(b, x, start, limit); shifted >= 0) return shifted;
  const value_id operands[] = {x};
  return b.emit(def<op::slice>, operands, {attrs.data(), attrs.size()});
}

}  // namespace partita::ops
