/// What is pending of a result where it is of operands.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/claims.hpp>

namespace partita::prove_detail {

/// Whether some of many flags hold, as a number, is the greatest of their numbers; whether all do,
/// the least.
constexpr bool numbers_of_flags(const workspace& w, pending& sums) {
  sums = w.chosen[0].sums;
  if (sums.contains(bound_axis)) return false;
  if (sums.combine == combiner::logical_or)
    sums.combine = combiner::max;
  else if (sums.combine == combiner::logical_and)
    sums.combine = combiner::min;
  return sums.combine == combiner::max || sums.combine == combiner::min;
}

/// What is pending of a result where it is of operands: sums of linear ops, of products in one
/// factor, and numbers of flags.
constexpr bool joint_sums(const workspace& w, const program& p, op_id o, pending& sums) {
  const op_node& n = p.op(o);
  std::uint32_t linear = 0;  // operands in which the op is linear, together
  bool product = false;
  bool any = false;
  for (const auto& c : w.chosen) any = any || c.sums.any();
  if (!any) return true;
  switch (n.def->id) {
    case def<op::convert>.id:
      if (p.type(p.operand(o, 0)).element == dtype::boolean) return numbers_of_flags(w, sums);
      linear = n.def->linear ? 1 : 0;
      break;
    case def<op::multiply>.id:
    case def<op::dot_general>.id:
    case def<op::convolution>.id:
      linear = 3;
      product = true;
      break;
    case def<op::divide>.id:  // of integers it rounds
      linear = is_floating(p.type(n.result).element) ? 1 : 0;
      product = true;
      break;
    case def<op::select>.id:
    case def<op::case_of>.id:  // of what the branches give
      linear = ~1u;
      break;
    case def<op::reduce>.id:
      for (const auto& c : w.chosen)
        if (c.sums.any() && static_cast<std::int64_t>(c.sums.combine) != p.attrs(o)[0])
          return false;
      sums = w.chosen[0].sums;
      return w.chosen.size() == 1;
    case def<op::concatenate>.id:
    case def<op::pad>.id:
      linear = ~0u;
      break;
    case def<op::gather>.id:
    case def<op::dynamic_slice>.id:
      linear = 1;
      product = true;
      break;
    default:
      if (n.def->linear) linear = ~0u;
      break;
  }
  for (std::size_t i = 0; i < w.chosen.size(); ++i) {
    const pending& mine = w.chosen[i].sums;
    if (!mine.any()) continue;
    if (mine.combine != combiner::add || i >= 32 || (linear >> i & 1u) == 0) return false;
    if (sums.any() && (product || sums != mine)) return false;
    sums = mine;
  }
  for (std::size_t i = 0; i < w.chosen.size(); ++i) {
    if (w.chosen[i].sums.any()) continue;
    const bool with = i < 32 && (linear >> i & 1u) != 0;
    if (with && !product && !w.is_identity(w.chosen[i], combiner::add)) return false;
    for (int a = 0; a < 32; ++a)
      if (sums.contains(a) && w.all.views[w.chosen[i].view].depends_on(a)) return false;
  }
  return true;
}

/// The factor of what the op makes where it is of its operands: they lose it.
constexpr double joint_scale(workspace& w, const site& at) {
  double scale = 1;
  switch (at.def().id) {
    case def<op::dot_general>.id:
    case def<op::convolution>.id:
      for (auto& c : w.chosen) {
        scale *= c.scale;
        c.scale = 1;
      }
      return scale;
    case def<op::reduce>.id:
      if (static_cast<combiner>(at.attrs()[0]) != combiner::add) break;
      scale = w.chosen[0].scale;
      w.chosen[0].scale = 1;
      return scale;
    default:
      break;
  }
  w.unscale();
  return 1;
}

}  // namespace partita::prove_detail
