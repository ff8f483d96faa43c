/// Pending reductions of results whose operands are pending.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/claims.hpp>

namespace partita::prove_detail {

/// True if a floating type contains all numbers of another one.
constexpr bool is_wider(dtype to, dtype from) {
  return is_floating(to) && is_floating(from) && size_of(to) > size_of(from);
}
/// The operands in which an op is jointly linear, as bits.
constexpr std::uint32_t linear_together(const op_def& d) {
  switch (d.id) {
    case def<op::concatenate>.id:
    case def<op::pad>.id:
      return ~0u;
    case def<op::dynamic_update_slice>.id:
      return 3;
    case def<op::select>.id:
    case def<op::case_of>.id:  // of the branches' results
      return ~1u;
    default:
      return d.linear ? ~0u : 0;
  }
}

/// Turns flags into numbers: "any" is the maximum of their numbers, and "all" is the minimum.
constexpr bool numbers_of_flags(const workspace& w, pending& sums) {
  sums = w.chosen[0].sums;
  if (sums.contains(bound_axis)) return false;
  if (sums.combine == combiner::logical_or)
    sums.combine = combiner::max;
  else if (sums.combine == combiner::logical_and)
    sums.combine = combiner::min;
  return sums.combine == combiner::max || sums.combine == combiner::min;
}

/// Finds the pending reduction of a result: sums of linear ops, products in one factor, and numbers
/// of flags.
constexpr bool joint_sums(const workspace& w, const program& p, op_id o, pending& sums) {
  const op_node& n = p.op(o);
  std::uint32_t linear = 0;  // operands in which the op is jointly linear
  bool product = false;
  bool any = false;
  for (const auto& c : w.chosen) any = any || c.sums.any();
  if (!any) return true;
  switch (n.def->id) {
    case def<op::convert>.id:
      if (p.type(p.operand(o, 0)).element == dtype::boolean) return numbers_of_flags(w, sums);
      linear = is_wider(p.type(n.result).element, p.type(p.operand(o, 0)).element) ? 1 : 0;
      break;
    case def<op::multiply>.id:
    case def<op::dot_general>.id:
    case def<op::convolution>.id:
      linear = 3;
      product = true;
      break;
    case def<op::divide>.id:  // for integers it rounds
      linear = is_floating(p.type(n.result).element) ? 1 : 0;
      product = true;
      break;
    case def<op::reduce>.id:
      for (const auto& c : w.chosen)
        if (c.sums.any() && static_cast<std::int64_t>(c.sums.combine) != p.attrs(o)[0])
          return false;
      sums = w.chosen[0].sums;
      return w.chosen.size() == 1;
    case def<op::gather>.id:
    case def<op::dynamic_slice>.id:
      linear = 1;
      product = true;
      break;
    default:
      linear = linear_together(*n.def);
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
    const int t = w.chosen[i].term;
    const view& v = w.all.views[w.chosen[i].view];
    for (int a = 0; a < 32; ++a)
      if (sums.contains(a) && v.depends_on(a)) return false;
    // (An unknown element may differ between devices.)
    if (sums.any() && v.count == 0 && !w.all.terms.is_positions(t) &&
        v.reaches_beyond(w.all.terms[t].shape))
      return false;
  }
  return true;
}

/// The common factor of all operands in which an op is jointly linear; zeros have any factor.
constexpr bool common_scale(workspace& w, std::uint32_t linear, double& scale) {
  bool found = false;
  for (std::size_t i = 0; i < w.chosen.size(); ++i) {
    const claim& c = w.chosen[i];
    const bool with = i < 32 && (linear >> i & 1u) != 0;
    if (with && w.is_identity(c, combiner::add)) continue;
    if (with ? found && c.scale != scale : c.scale != 1) return false;
    if (with) scale = c.scale;
    found = found || with;
  }
  for (auto& c : w.chosen) c.scale = 1;
  return true;
}
constexpr double unscale(workspace& w) {
  w.unscale();
  return 1;
}
/// Moves the common factor of the operands to the result.
constexpr double joint_scale(workspace& w, const site& at) {
  double scale = 1;
  if (common_scale(w, linear_together(at.def()), scale)) return scale;
  scale = 1;
  switch (at.def().id) {
    case def<op::divide>.id:
      scale = w.chosen[0].scale / w.chosen[1].scale;
      break;
    case def<op::multiply>.id:
    case def<op::dot_general>.id:
    case def<op::convolution>.id:
      for (const auto& c : w.chosen)
        if (!take_factor(scale, c.scale)) return unscale(w);
      break;
    case def<op::reduce>.id:
      if (static_cast<combiner>(at.attrs()[0]) != combiner::add) return unscale(w);
      scale = w.chosen[0].scale;
      break;
    default:
      return unscale(w);
  }
  if (!is_factor(scale)) return unscale(w);
  for (auto& c : w.chosen) c.scale = 1;
  return scale;
}

}  // namespace partita::prove_detail
