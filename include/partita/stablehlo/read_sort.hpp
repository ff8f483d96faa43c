/// Readers of sort and top_k.
#pragma once

#include <partita/stablehlo/sorting.hpp>

namespace partita::stablehlo_detail {

constexpr void read_sort(op_context& c) {
  if (!c.region_count(1) || !captures_scalars(c)) return;
  if (c.operands.empty()) return c.fail("H012", "it has no operands");
  std::int64_t along = c.number("dimension", c.type(0).shape.rank - 1);
  if (along < 0) along += c.type(0).shape.rank;
  const int dim = c.dimension(along);
  if (!c.failed() && dim >= c.type(0).shape.rank)
    c.fail("H005", "dimension ", dim, " is out of range of ", c.type(0));
  if (c.failed()) return;
  const sort_order order = find_order(c.regions[0]);
  if (!c.captured.empty() || order.keys.empty()) return sort_by_program(c, dim);
  // Keys come first; for a total order of floats, integers with the same order.
  vec<value_id> operands;
  vec<std::size_t> place(c.operands.size(), 0);
  vec<char> placed(c.operands.size(), 0);
  for (int k : order.keys) {
    const auto i = static_cast<std::size_t>(k);
    const value_id x = c.x(i), key = order.total ? op::total_order_key(c.b, x) : x;
    place[i] = operands.size();
    placed[i] = key == x ? 1 : 0;
    operands.push_back(key);
  }
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    if (placed[i] != 0) continue;
    place[i] = operands.size();
    operands.push_back(c.x(i));
  }
  if (c.failed()) return;
  const value_id first = ops::sort(c.b, {operands.data(), operands.size()}, dim,
                                   static_cast<int>(order.keys.size()), order.descending);
  for (std::size_t i = 0; i < place.size(); ++i)
    c.give(first < 0 ? -1 : first + static_cast<int>(place[i]));
}
constexpr void read_top_k(op_context& c) {
  const auto k = c.needed("k");
  if (c.count(1)) c.give(ops::top_k(c.b, c.x(0), k), 2);
}

}  // namespace partita::stablehlo_detail
