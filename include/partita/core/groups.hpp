/// Groups of neighbouring ops that share their loops.
#pragma once

#include <partita/support/vec.hpp>

#include <partita/core/core_program.hpp>

namespace partita {

/// True if two nests have loops over the same axes in the same order.
constexpr bool same_axes(const nest& a, const nest& b) {
  if (a.count != b.count) return false;
  for (int i = 0; i < a.count; ++i)
    if (a.loops[i].axis != b.loops[i].axis) return false;
  return true;
}

/// True if an iteration of an op needs only its own block of an operand, without a halo.
constexpr bool sees_own_piece(const core_program& c, op_id o, int operand) {
  if (!c.has_halo(o)) return true;
  const auto given = c.p.attrs(o);
  vec<std::int64_t> attrs(given.begin(), given.end());
  for (const auto& h : c.halos_of(o, attrs))
    if (!h.cut.plain(operand)) return false;
  return true;
}

/// Returns the group number of each op (-1: no loops, or a parameter). The ops of a group are
/// adjacent, have loops over the same axes in the same order, and consume values exactly as they
/// are produced, so that one nest of loops can run them all (producer-consumer fusion).
///
/// Source    PartIR, listing 8; seed talk, "when slice met tile"
constexpr vec<int> loop_groups(const core_program& c, bool fuse = true) {
  vec<int> group(c.p.ops.size(), -1);
  int current = -1, next = 0;
  op_id previous = -1;
  for (op_id o : c.order) {
    const nest& n = c.nest_of(o);
    const bool parameter = c.p.is(o, op_role::parameter);
    if (parameter || n.count == 0 || c.p.is(o, op_role::wire)) {
      if (!parameter) current = -1;
      continue;
    }
    bool joins = fuse && current >= 0 && same_axes(n, c.nest_of(previous)) &&
                 c.nested.scope[static_cast<std::size_t>(o)] ==
                     c.nested.scope[static_cast<std::size_t>(previous)];
    for (int i = 0; joins && i < c.p.op(o).operand_count; ++i) {
      const op_id q = c.p.producer(c.p.operand(o, i));
      if (group[static_cast<std::size_t>(q)] != current) continue;
      for (const auto& l : c.nest_of(q))  // sums and `any` end their loop before the value is used
        if (l.factor == any_factor ||
            c.map.result_dim(c.map.at(q, l.factor), c.p.result_index(c.p.operand(o, i))) == no_dim)
          joins = false;
      joins = joins && c.produced_layout(c.p.operand(o, i)) == c.required_layout(o, i) &&
              sees_own_piece(c, o, i);
    }
    if (!joins) current = next++;
    group[static_cast<std::size_t>(o)] = current;
    previous = o;
  }
  return group;
}

/// True if a parameter needs loops of its own. It does not if every use slices it as its loops do;
/// then they fuse with the loops around its users.
constexpr bool keeps_its_loops(const core_program& c, op_id o) {
  if (c.nest_of(o).count == 0) return false;
  for (const auto& l : c.nest_of(o))
    if (l.factor == any_factor) return true;
  const value_id v = c.p.op(o).result;
  if (c.returned[static_cast<std::size_t>(v)] || c.uses(v).empty()) return true;
  for (const auto& u : c.uses(v))
    if (c.required_layout(u.op, u.operand) != c.produced_layout(v)) return true;
  return false;
}

/// True if a value of a group is used outside the group, or not at all.
constexpr bool escapes(const core_program& c, const vec<int>& group, value_id v) {
  if (c.returned[static_cast<std::size_t>(v)] || c.uses(v).empty()) return true;
  for (const auto& u : c.uses(v))
    if (group[static_cast<std::size_t>(u.op)] != group[static_cast<std::size_t>(c.p.producer(v))])
      return true;
  return false;
}

}  // namespace partita
