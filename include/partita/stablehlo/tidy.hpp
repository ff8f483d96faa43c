/// Passes over a program after all its text is read.
#pragma once

#include <partita/ir/copy.hpp>
#include <partita/op/arithmetic.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/pad.hpp>
#include <partita/op/registry.hpp>
#include <partita/op/slice.hpp>
#include <partita/support/name_table.hpp>

namespace partita::stablehlo_detail {

/// Removes unused constants, positions, slices, pads, negations and broadcasts: initial values of
/// reductions and of stacks in loops, positions that top_k returns anyway, and ops that became part
/// of a shift.
constexpr program without_unused(program&& p) {
  vec<char> used(p.types.size(), 0);
  for (const auto& out : p.outputs) used[static_cast<std::size_t>(out.value)] = 1;
  const auto unused = [&](op_id o) {
    const op_def& d = *p.op(o).def;
    const bool left_over = d.constant || d.id == def<op::iota>.id || d.id == def<op::slice>.id ||
                           d.id == def<op::pad>.id || d.id == def<op::negate>.id ||
                           d.id == def<op::broadcast_in_dim>.id;
    return left_over && used[static_cast<std::size_t>(p.op(o).result)] == 0;
  };
  for (op_id o = p.op_count(); o-- > 0;)
    if (!unused(o))
      for (value_id v : p.operands(o)) used[static_cast<std::size_t>(v)] = 1;
  for (auto& r : p.regions) r = without_unused(static_cast<program&&>(r));
  bool any = false;
  for (op_id o = 0; !any && o < p.op_count(); ++o) any = unused(o);
  if (!any) return static_cast<program&&>(p);
  program q;
  program_copier copy(p, q);
  copy.reserve();
  for (op_id o = 0; o < p.op_count(); ++o) {
    if (unused(o)) continue;
    copy.op(o);
    const op_node& n = p.op(o);
    for (int r = 0; r < n.region_count; ++r)
      q.append_region(static_cast<program&&>(p.regions[n.region_begin + r]));
  }
  copy.interface();
  return q;
}

/// Makes the names of tags unique: in a function that is called several times "x" becomes "x",
/// "x.again", "x.again.2", ...
constexpr void name_tags_apart(program& p) {
  struct place {
    program* p;
    op_id o;
  };
  vec<place> tags;
  vec<program*> waiting;
  waiting.push_back(&p);
  while (!waiting.empty()) {
    program* each = waiting.back();
    waiting.pop_back();
    for (op_id o = 0; o < each->op_count(); ++o)
      if (each->is(o, op_role::tag)) tags.push_back({each, o});
    for (auto& r : each->regions) waiting.push_back(&r);
  }
  if (tags.empty()) return;
  vec<text> names;  // (Keeps the names in place for the table.)
  names.reserve(tags.size() + p.inputs.size());
  name_table taken(names.size());
  for (int i = 0; i < p.input_count(); ++i) {
    names.push_back(p.input_name(i));
    taken.insert(names.back().view(), -1);
  }
  vec<int> copies(tags.size(), 0);
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const auto [in, o] = tags[i];
    const text wanted = in->view(in->op(o).name);
    text name = wanted;
    const int first = taken.find(wanted.view(), -2);
    while (taken.find(name.view(), -2) != -2) {
      const int number = first >= 0 ? ++copies[static_cast<std::size_t>(first)] : ++copies[i];
      name = number == 1 ? concat(wanted, ".again") : concat(wanted, ".again.", number);
    }
    names.push_back(name);
    taken.insert(names.back().view(), static_cast<int>(i));
    if (!(name == wanted)) in->op(o).name = in->intern(name);
  }
}

}  // namespace partita::stablehlo_detail
