/// Numbering of the ops of a source program, including those of nested programs.
#pragma once

#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace ir_detail {

/// Calls f(node) for each op, in reading order.
template <class Program, class F>
constexpr void for_each_op(Program& p, const F& f) {
  auto* const ops = p.ops.data();
  for (op_id o = 0, count = p.op_count(); o < count; ++o) {
    f(ops[o]);
    for (int r = 0; r < ops[o].region_count; ++r)
      for_each_op(p.regions[ops[o].region_begin + r], f);
  }
}

}  // namespace ir_detail

/// Marks an op, with its nested programs, as a copy of one that is computed elsewhere.
constexpr void mark_again(program& p, op_id o) {
  op_node& n = p.ops[o];
  n.marks.again = true;
  for (int r = 0; r < n.region_count; ++r)
    ir_detail::for_each_op(p.regions[n.region_begin + r],
                           [](op_node& nested) { nested.marks.again = true; });
}

/// Sets op_marks::source of each op to its number in reading order, and updates origins, labels,
/// parts and places. If an op occurs several times (derivatives compute some ops again), origins
/// refer to its first occurrence that is not a copy, or to the first copy. A program that is
/// already numbered does not change.
///
/// Cost      linear in ops
constexpr void number_ops(program& p) {
  int count = 0, end = 0;
  bool numbered = true;
  ir_detail::for_each_op(p, [&](const op_node& n) {
    numbered = numbered && n.marks.source == count;
    if (n.marks.source >= end) end = n.marks.source + 1;
    ++count;
  });
  if (numbered) return;
  struct place {
    int number = -1;
    bool copy = false;
  };
  vec<place> now(static_cast<std::size_t>(end), place{});  // by old number
  count = 0;
  label_list labels;
  vec<int> scopes, places;
  ir_detail::for_each_op(p, [&](op_node& n) {
    if (!p.labels.empty()) labels.add(p.labels, n.marks.source, n.def->id);
    if (!p.scopes.empty()) scopes.push_back(p.scopes.of(n.marks.source));
    if (p.scopes.any_places()) places.push_back(p.scopes.place_of(n.marks.source));
    if (n.marks.source >= 0) {
      place& at = now[n.marks.source];
      if (at.number < 0 || (at.copy && !n.marks.again)) at = {count, n.marks.again};
    }
    n.marks.source = count++;
  });
  if (!p.labels.empty()) p.labels = static_cast<label_list&&>(labels);
  if (!p.scopes.empty()) p.scopes.renumber(static_cast<vec<int>&&>(scopes));
  if (p.scopes.any_places()) p.scopes.renumber_places(static_cast<vec<int>&&>(places));
  ir_detail::for_each_op(p, [&](op_node& n) {
    int& origin = n.marks.origin;
    origin = origin >= 0 && origin < end ? now[origin].number : -1;
  });
}

}  // namespace partita
