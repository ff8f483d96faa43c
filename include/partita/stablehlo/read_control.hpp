/// Readers of branches, barriers, functions of scalars, and tuples.
#pragma once

#include <partita/stablehlo/folding.hpp>
#include <partita/stablehlo/op_context.hpp>
#include <partita/stablehlo/regions.hpp>

namespace partita::stablehlo_detail {

constexpr void read_case(op_context& c) {
  if (!c.count(1) || c.regions.empty()) return;
  value_id index = c.x(0);
  if (c.type(0).element == dtype::boolean) {
    // `if`: the first program runs if the index is true.
    if (!c.region_count(2)) return;
    index = ops::convert(c.b, ops::logical_not(c.b, index), dtype::i32);
  }
  const int n = c.regions[0].output_count();
  c.give(ops::case_of(c.b, index, {c.captured.data(), c.captured.size()},
                      static_cast<vec<program>&&>(c.regions)),
         n);
}
constexpr void read_barrier(op_context& c) {
  if (c.operands.empty()) return;
  c.give(ops::optimization_barrier(c.b, {c.operands.data(), c.operands.size()}),
         static_cast<int>(c.operands.size()));
}
/// Applies a function of scalars to each element.
constexpr void read_map(op_context& c) {
  if (c.operands.empty()) return c.fail("H012", "it has no operands");
  if (!c.region_count(1) || !captures_scalars(c)) return;
  const program& f = c.regions[0];
  if (f.inputs.size() != c.operands.size() + c.captured.size() || f.output_count() != 1)
    return c.fail("H012", "its program has ", f.inputs.size() - c.captured.size(),
                  " arguments and ", f.output_count(), " results; ", c.operands.size(),
                  " and 1 are needed");
  const shape all = c.type(0).shape;
  for (const value_id v : c.operands)
    if (!same_shape(c.b.type(v).shape, all))
      return c.fail("S103", "shapes ", all, " and ", c.b.type(v).shape, " differ");
  vec<value_id> inputs = c.operands;
  inputs.insert_back(c.captured.begin(), c.captured.end());
  const vec<value_id> made = vectorized(c, f)(all, inputs);
  if (!c.failed()) c.give(made[0]);
}
/// A tuple is represented by its values.
constexpr void read_tuple(op_context& c) {
  for (const value_id v : c.operands) c.give(v);
}
/// Reads `%0[1]` for a tuple whose values are the operands.
constexpr void read_get_tuple_element(op_context& c) {
  vec<std::int64_t> list;
  bool splat = false;
  if (c.o.has("index"))
    list.push_back(c.number("index", 0));
  else if (!read_integers(c.o.attribute("[]"), list, splat) || list.size() != 1)
    return c.fail("H005", "the number of the element is needed, as in %0[1]");
  const auto count = static_cast<std::int64_t>(c.operands.size());
  if (!c.failed() && (list[0] < 0 || list[0] >= count))
    c.fail("H005", "element ", list[0], " of a tuple of ", count);
  if (!c.failed()) c.give(c.x(static_cast<std::size_t>(list[0])));
}
constexpr void read_identity(op_context& c) {
  if (c.count(1)) c.give(c.x(0));
}

}  // namespace partita::stablehlo_detail
