/// concatenate: joins operands along a dimension.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Attribute: the dimension. That dimension cannot be sharded; the others can.
///
/// Tile map  ([i, 3], [i, 5], dim=1) -> ([i, 8])
/// Errors    S102 element types differ, S114 bad dimension or shapes
struct concatenate {
  static constexpr std::string_view name = "concatenate";
  static constexpr fusion_kind fusion = fusion_kind::loop;
  static constexpr void infer(infer_context& c) {
    if (c.operands.empty()) return c.fail("S114", "concatenate: no operand");
    if (c.attrs.size() != 1)
      return c.fail("S114", "concatenate: ", c.attrs.size(), " dimensions; one is needed");
    c.result = c.operands[0];
    if (c.attrs[0] < 0 || c.attrs[0] >= c.result.shape.rank)
      return c.fail("S114", "concatenate: dimension ", c.attrs[0], " is out of range for ",
                    c.result);
    const int dim = static_cast<int>(c.attrs[0]);
    for (std::size_t i = 1; i < c.operands.size(); ++i) {
      const auto& t = c.operands[i];
      if (t.element != c.result.element)
        return c.fail("S102", "concatenate: element types ", name_of(c.result.element), " and ",
                      name_of(t.element), " differ; use convert");
      bool good = t.shape.rank == c.result.shape.rank;
      for (int d = 0; good && d < t.shape.rank; ++d)
        good = d == dim || same_extent(t.shape[d], c.result.shape[d]);
      if (!good)
        return c.fail("S114", "concatenate: shapes ", c.operands[0].shape, " and ", t.shape,
                      " differ outside of dimension ", dim);
      for (int d = 0; d < t.shape.rank; ++d) {
        auto& extent = c.result.shape[d];
        if (d != dim)
          extent = merge_extent(extent, t.shape[d]);
        else
          extent = extent == dyn || t.shape[d] == dyn ? dyn : saturating_add(extent, t.shape[d]);
      }
    }
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) {
      if (d == c.attrs[0]) continue;
      c.tile(c.result.shape[d], d);
      for (std::size_t i = 0; i < c.operands.size(); ++i) c.operand(static_cast<int>(i), d);
    }
  }
  static constexpr void derive(derive_context& c) {
    const int dim = static_cast<int>(c.b.p.attrs(c.op)[0]);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < c.operands.size(); ++i) {
      const shape s = c.b.type(c.b.p.operand(c.op, static_cast<int>(i))).shape;
      std::int64_t start[max_rank] = {}, limit[max_rank] = {};
      for (int d = 0; d < s.rank; ++d) limit[d] = ops::whole;
      start[dim] = at;
      at += s[dim];
      limit[dim] = at;
      const auto rank = static_cast<std::size_t>(s.rank);
      if (c.wanted[i]) c.operands[i] = ops::slice(c.b, c.cotangent, {start, rank}, {limit, rank});
    }
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.number("dim");
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::concatenate)
}  // namespace partita

namespace partita::ops {

/// Returns the operand itself if there is only one, and a `roll` or `pad` if the operands form one
/// (shifts.hpp).
constexpr value_id concatenate(builder& b, span<const value_id> parts, int dim) {
  if (parts.size() == 1) return parts[0];
  for (value_id each : parts)
    if (each < 0) return -1;
  for (const auto rule : {&roll_of_slices, &pad_of_constants})
    if (const value_id shifted = rule(b, parts, dim); shifted >= 0) return shifted;
  const std::int64_t attrs[] = {dim};
  return b.emit(def<op::concatenate>, parts, attrs);
}

}  // namespace partita::ops
