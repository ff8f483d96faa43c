/// Executes single ops on one device.
#pragma once

#include <partita/op/microbatch.hpp>
#include <partita/prove/elements/elementwise.hpp>
#include <partita/prove/elements/folds.hpp>
#include <partita/prove/elements/lookups.hpp>
#include <partita/prove/elements/matrices.hpp>
#include <partita/prove/elements/movement.hpp>
#include <partita/prove/elements/order.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::prove_detail::elements {

/// The elementwise implementation of an op.
struct rule {
  std::uint64_t op;
  void (*fill)(const op_elements&);
};
inline constexpr rule rules[] = {
    {def<op::constant>.id, &constant},
    {def<op::literal>.id, &literal},
    {def<op::iota>.id, &iota},
    {def<op::broadcast_in_dim>.id, &broadcast},
    {def<op::transpose>.id, &transpose},
    {def<op::reshape>.id, &same},
    {def<op::bitcast_convert>.id, &bitcast},
    {def<op::slice>.id, &slice},
    {def<op::reverse>.id, &reverse},
    {def<op::roll>.id, &roll},
    {def<op::pad>.id, &pad},
    {def<op::concatenate>.id, &concatenate},
    {def<op::dot_general>.id, &dot},
    {def<op::convolution>.id, &convolution},
    {def<op::reduce>.id,
     [](const op_elements& c) { op::reduce::with_position(c.attrs) ? extreme(c) : reduce(c); }},
    {def<op::reduce_window>.id, &reduce_window},
    {def<op::select_and_scatter>.id, &select_and_scatter},
    {def<op::select_and_gather>.id, &select_and_gather},
    {def<op::cumsum>.id, &cumulate},
    {def<op::gather>.id, &gather},
    {def<op::scatter>.id, [](const op_elements& c) { scatterer(c).fill(); }},
    {def<op::dynamic_slice>.id, &dynamic_slice},
    {def<op::dynamic_update_slice>.id, &dynamic_update_slice},
    {def<op::sort>.id, &sort},
    {def<op::top_k>.id, &top_k},
    {def<op::fold>.id, &fold},
    {def<op::cholesky>.id, &cholesky},
    {def<op::triangular_solve>.id, &triangular_solve},
};
constexpr const rule* rule_of(const op_def& d) {
  for (const rule& each : rules)
    if (each.op == d.id) return &each;
  return nullptr;
}
/// True if equal operands of an op without a rule give equal results: not if it has no operands,
/// or differs from run to run.
constexpr bool is_determined(const op_node& n) {
  const std::uint64_t id = n.def->id;
  if (n.def->elementwise || n.def->collective || id == def<op::shard_start>.id) return true;
  if (rule_of(*n.def) != nullptr) return true;
  return n.def->role == op_role::compute && n.operand_count > 0 &&
         id != def<op::microbatch_slice>.id && id != def<op::microbatch_sum>.id &&
         id != def<op::microbatch_stack>.id;
}

/// A user's op: known only to be a deterministic function.
constexpr void function(const op_elements& c) {
  drawing d = drawing_of(c);
  for (auto each : c.attrs) d.add(each);
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    for (auto extent : c.types[i].shape) d.add(extent);
    for (std::int64_t n = 0; n < c.types[i].shape.elements(); ++n) d.add(c.operands[i][n].of);
  }
  for (const auto& t : c.made) d.add(static_cast<int>(t.element));
  const fingerprint all = d.drawn();
  for (std::size_t r = 0; r < c.results.size(); ++r)
    for_each_place(c.made[r].shape, [&](const place&, std::int64_t n) {
      c.results[r][n] = c.a.unknown(c.made[r].element,
                                    drawing(2).add(all).add(static_cast<int>(r)).add(n).drawn());
    });
}
constexpr void compute(const op_elements& c) {
  if (c.def.elementwise) return elementwise_elements(c).fill();
  const rule* found = rule_of(c.def);
  found != nullptr ? found->fill(c) : function(c);
}

}  // namespace partita::prove_detail::elements
