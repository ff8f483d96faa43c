/// States that pass from one microbatch to the next.
#pragma once

#include <partita/ir/program.hpp>
#include <partita/op/microbatch.hpp>
#include <partita/op/registry.hpp>
#include <partita/support/vec.hpp>

namespace partita::mpmd_detail {

constexpr bool is_state(const op_node& n) { return n.def->id == def<op::microbatch_state>.id; }
constexpr bool is_next_state(const op_node& n) { return n.def->id == def<op::microbatch_next>.id; }
constexpr bool is_last_state(const op_node& n) { return n.def->id == def<op::microbatch_last>.id; }

/// By value: for a microbatch_state, the microbatch_next that replaces it one iteration later, else
/// -1. Empty without states.
constexpr vec<value_id> next_states(const program& p) {
  vec<value_id> by_number, next;
  for_each_of(p, def<op::microbatch_next>, [&](op_id o) {
    const auto number = static_cast<std::size_t>(p.attrs(o)[0]);
    if (by_number.size() <= number) by_number.resize(number + 1, -1);
    by_number[number] = p.op(o).result;
  });
  if (by_number.empty()) return next;
  next.resize(p.types.size(), -1);
  for_each_of(p, def<op::microbatch_state>, [&](op_id o) {
    next[p.op(o).result] = by_number[static_cast<std::size_t>(p.attrs(o)[0])];
  });
  return next;
}

}  // namespace partita::mpmd_detail
