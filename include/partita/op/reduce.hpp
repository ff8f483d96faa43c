/// reduce: combines all elements along some dimensions.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Names of the reductions, by number: a combiner or one of ops::extreme.
struct reducer_list {
  static constexpr int combiners = sizeof(combiner_names) / sizeof(combiner_names[0]);
  std::string_view names[combiners + 2];

  constexpr reducer_list() {
    for (int i = 0; i < combiners; ++i) names[i] = combiner_names[i];
    names[static_cast<int>(ops::extreme::argmax)] = "argmax";
    names[static_cast<int>(ops::extreme::argmin)] = "argmin";
  }
};
inline constexpr reducer_list reducers;

/// Checks that a combiner supports an element type. `name` is the op's name.
///
/// Errors    S104 element type not supported
constexpr failure check_combined(std::string_view name, combiner how, dtype t) {
  failure f;
  const bool logical = how >= combiner::logical_and;
  if (logical && is_floating(t))
    f.record("S104", name, ": element type ", name_of(t), " is neither i1 nor an integer type");
  if (!logical && t == dtype::boolean) f.record("S104", name, ": element type i1 is not a number");
  return f;
}
/// True if an attribute is a combiner that supports the operands' element types. `names` lists the
/// combiners that the op accepts.
///
/// Errors    S104 element type not supported, S152 not a combiner
constexpr bool check_combiner(infer_context& c, std::string_view name,
                              span<const std::string_view> names, std::int64_t stored) {
  if (stored < static_cast<int>(combiner::add) || stored > static_cast<int>(combiner::logical_or)) {
    text known;
    append_list(known, static_cast<int>(names.size()) - 1, [&](int i) {
      known << names[static_cast<std::size_t>(i + 1)] << " (" << i + 1 << ')';
    });
    c.fail("S152", name, ": combiner ", stored, " is not one of ", known);
    return false;
  }
  for (const tensor_type& x : c.operands)
    c.error.record(check_combined(name, static_cast<combiner>(stored), x.element));
  return !c.error;
}

/// Combines the elements along some dimensions, which disappear.
///
/// Attributes: the combiner (add 1, max 2, min 3, multiply 4, and 5, or 6, argmax 7, argmin 8),
/// then the dimensions, strictly increasing. Without dimensions, returns the operands unchanged. An
/// empty dimension yields the identity of the combiner (0, -inf, inf, 1, all bits, 0; for max and
/// min of integers, the minimum and maximum value). "and" and "or" are logical for i1 and bitwise
/// for integers. (StableHLO has a region and an initial value instead.)
///
/// argmax and argmin take values and their positions, and return the extreme value and its
/// position. Among equal values the smallest position wins; NaN precedes every number. An empty
/// dimension yields the identity of max or min, and position 0. (JAX: lax.argmax, with an iota as
/// positions.)
///
/// Shapes    (s...) -> (s without dims); argmax, argmin: (s...), (s...) -> the same for both
/// Tile map  ([i, j]) -> ([i])  reduce={j:add}
///           argmax, argmin: ([i, n], [i, n]) -> ([i], [i])  again={n}: combiners join single
///           values, not pairs, so the pairs of all shards are reduced again
/// Cost      one flop per element
/// Errors    P017 number of operands, S103 shapes differ, S104 element type not supported, S110 bad
///           dimensions, S120 positions are not integers, S152 not a combiner
struct reduce {
  static constexpr std::string_view name = "reduce";
  static constexpr fusion_kind fusion = fusion_kind::last;
  /// True if the reduction also returns the position.
  static constexpr bool with_position(span<const std::int64_t> attrs) {
    return !attrs.empty() && (attrs[0] == static_cast<int>(ops::extreme::argmax) ||
                              attrs[0] == static_cast<int>(ops::extreme::argmin));
  }
  static constexpr bool reduced(const std::int64_t* attrs, int count, int dim) {
    for (int i = 1; i < count; ++i)
      if (attrs[i] == dim) return true;
    return false;
  }
  /// Errors    P017 number of operands, S103 shapes differ, S104 not a number, S120 not an integer
  ///           type
  static constexpr bool check_operands(infer_context& c) {
    const bool pairs = with_position(c.attrs);
    if (c.operands.size() != (pairs ? 2 : 1)) {
      c.fail("P017", name, ": ", c.operands.size(), " operands are given; ",
             pairs ? "2 (values, positions) are" : "1 is", " needed");
      return false;
    }
    if (!pairs) return check_combiner(c, name, reducers.names, c.attrs.empty() ? 0 : c.attrs[0]);
    const tensor_type &values = c.operands[0], &positions = c.operands[1];
    if (values.element == dtype::boolean)
      c.fail("S104", name, ": element type i1 is not a number");
    else if (!is_integer(positions.element))
      c.fail("S120", name, ": element type ", name_of(positions.element),
             " of the positions is not an integer type");
    else if (!same_shape(values.shape, positions.shape))
      c.fail("S103", name, ": shapes ", values.shape, " and ", positions.shape, " differ");
    return !c.error;
  }
  static constexpr void infer(infer_context& c) {
    if (!check_operands(c)) return;
    const shape& from = c.operands[0].shape;
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
    if (c.operands.size() == 2) c.more.push_back({c.operands[1].element, c.result.shape});
  }
  static constexpr void tile_map(tile_map_context& c) {
    const bool pairs = c.operands.size() == 2;
    int kept = 0;
    for (int d = 0; d < c.operands[0].shape.rank; ++d) {
      const std::int64_t size = c.operands[0].shape[d];
      if (!reduced(c.attrs, c.attr_count, d)) {
        c.tile(size, kept).operand(0, d);
        if (pairs) c.also(1, kept).operand(1, d);
        ++kept;
      } else if (!pairs) {
        c.reduce(size, static_cast<combiner>(c.attrs[0])).operand(0, d);
      } else {
        c.tile(size, no_dim).operand(0, d).operand(1, d).again();
      }
    }
  }
  /// add: repeats the cotangent. max, min: shares it equally among the elements that equal the
  /// result. argmax, argmin: sends the value's cotangent to the element at the position. multiply:
  /// multiplies it by the product of the other elements.
  static constexpr void derive(derive_context& c) {
    if (c.cotangent < 0) return;
    builder& b = c.b;
    const value_id x = b.p.operand(c.op, 0), y = b.p.op(c.op).result;
    const auto attrs = b.p.attrs(c.op);
    const auto combine = static_cast<combiner>(attrs[0]);
    const bool pairs = with_position(attrs);
    const shape to = b.type(x).shape;
    std::int64_t kept[max_rank] = {}, summed[max_rank] = {};
    std::size_t count = 0, summed_count = attrs.size() - 1;
    for (std::size_t i = 0; i < summed_count; ++i) summed[i] = attrs[i + 1];
    for (int d = 0; d < to.rank; ++d)
      if (!reduced(attrs.data(), static_cast<int>(attrs.size()), d)) kept[count++] = d;
    const ops::ints dims{kept, count};
    if (combine == combiner::add) {
      c.operands[0] = ops::broadcast_in_dim(b, c.cotangent, to, dims);
      return;
    }
    if (combine == combiner::multiply) {
      if (to.elements() > 0) c.operands[0] = of_product(b, x, c.cotangent, {summed, summed_count});
      return;  // an empty product has no cotangent
    }
    const auto reaches = [&](value_id operand, value_id result) {
      const value_id repeated = ops::broadcast_in_dim(b, result, to, dims);
      return ops::compare(b, ops::direction::eq, operand, repeated);
    };
    value_id hit = reaches(x, y);
    if (pairs) {
      const value_id there = reaches(b.p.operand(c.op, 1), y + 1);
      hit = ops::logical_and(b, hit, there);
    }
    const dtype t = b.type(x).element;
    const value_id ties =
        ops::reduce(b, ops::convert(b, hit, t), combiner::add, {summed, summed_count});
    const value_id share = ops::divide(b, c.cotangent, ties);
    c.operands[0] =
        ops::select(b, hit, ops::broadcast_in_dim(b, share, to, dims), ops::scalar(b, t, 0));
  }
  /// Returns the cotangent of x for its product over `dims`. It does not divide, so zeros are
  /// handled exactly: with x in halves l and r, the cotangent is (h r, h l), where h is the
  /// cotangent of the product l r. Work is linear in the size of x; the number of ops is
  /// logarithmic.
  static constexpr value_id of_product(builder& b, value_id x, value_id cotangent, ops::ints dims) {
    if (b.failed()) return -1;
    const shape s = b.type(x).shape;
    for (auto each : dims) {
      const int d = static_cast<int>(each);
      if (s[d] == 1) continue;
      const auto piece = [&](value_id v, std::int64_t begin, std::int64_t end) {
        std::int64_t start[max_rank] = {}, limit[max_rank] = {};
        for (auto& l : limit) l = ops::whole;
        start[d] = begin;
        limit[d] = end;
        const auto n = static_cast<std::size_t>(s.rank);
        return ops::slice(b, v, {start, n}, {limit, n});
      };
      const std::int64_t half = s[d] / 2;
      const bool odd = s[d] % 2 != 0;
      const value_id l = piece(x, 0, half), r = piece(x, half, 2 * half);
      value_id parts[3] = {ops::multiply(b, l, r), -1, -1};
      if (odd) parts[1] = piece(x, 2 * half, s[d]);
      const value_id pairs = ops::concatenate(b, {parts, odd ? 2u : 1u}, d);
      const value_id h = of_product(b, pairs, cotangent, dims);
      if (b.failed()) return -1;
      const value_id of_pairs = piece(h, 0, half);
      parts[0] = ops::multiply(b, of_pairs, r);
      parts[1] = ops::multiply(b, of_pairs, l);
      if (odd) parts[2] = piece(h, half, half + 1);
      return ops::concatenate(b, {parts, odd ? 3u : 2u}, d);
    }
    return ops::reshape(b, cotangent, s);
  }
  static constexpr std::int64_t flops(const cost_context& c) {
    return c.operands[0].shape.elements();
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.word("", reducers.names);
    f.rest("dims");
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::reduce)
}  // namespace partita

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
constexpr value_id reduce(builder& b, value_id x, value_id positions, extreme which, ints dims) {
  vec<std::int64_t> attrs{static_cast<std::int64_t>(which)};
  attrs.insert_back(dims.begin(), dims.end());
  const value_id operands[] = {x, positions};
  return b.emit(def<op::reduce>, operands, {attrs.data(), attrs.size()});
}

}  // namespace partita::ops
