/// How much memory the values of a program take while each op runs.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Live memory of a program, in bytes. A value lives from the op that makes it to its last use; an
/// op has its operands and its results at once; arguments stay alive throughout. Figures stop at
/// `saturated`.
struct live_bytes {
  std::int64_t arguments = 0;
  vec<std::int64_t> during;  ///< by op: other live values, and what nested programs need beyond
  vec<std::int64_t> inside;  ///< by op: that of nested programs alone, their arguments not counted
  vec<op_id> last_use;       ///< by value: the op after which it dies (the number of ops if it is
                             ///< returned, -1 if nothing uses it)

  constexpr std::int64_t peak() const { return saturating_add(arguments, beyond_arguments()); }
  constexpr std::int64_t beyond_arguments() const {
    std::int64_t most = 0;
    const std::int64_t* const all = during.data();
    for (std::size_t o = 0; o < during.size(); ++o)
      if (all[o] > most) most = all[o];
    return most;
  }

  /// Linear in ops, those of nested programs included.
  constexpr explicit live_bytes(const program& p)
      : during(p.ops.size(), 0), inside(p.ops.size(), 0), last_use(p.types.size(), -1) {
    for (op_id o = 0; !p.regions.empty() && o < p.op_count(); ++o)
      for (const auto& r : p.regions_of(o)) {
        const std::int64_t beyond = live_bytes(r).beyond_arguments();
        if (beyond > inside[o]) inside[o] = beyond;
      }
    find(p);
  }
  /// `nested`: what is `inside`, where that is known. Linear in the program's own ops.
  constexpr live_bytes(const program& p, const vec<std::int64_t>& nested)
      : during(p.ops.size(), 0), inside(nested), last_use(p.types.size(), -1) {
    find(p);
  }

 private:
  constexpr void find(const program& p) {
    const op_id count = p.op_count();
    PARTITA_WORK(p.ops.size());
    // (Few calls: `partition` asks for this.)
    op_id* const last_uses = last_use.data();
    const op_id* const producers = p.producers.data();
    const op_node* const ops = p.ops.data();
    const value_id* const operands = p.operand_list.data();
    for (op_id o = 0; o < count; ++o) {
      const op_node& n = ops[o];
      for (int i = 0; i < n.operand_count; ++i) last_uses[operands[n.operand_begin + i]] = o;
    }
    for (const auto& out : p.outputs) last_use[out.value] = count;
    for (int i = 0; i < p.input_count(); ++i)
      arguments = saturating_add(arguments, p.input_type(i).bytes());
    constexpr op_id taken = -2;
    level live;
    vec<std::int64_t> of_values(p.types.size(), 0);
    std::int64_t* const sizes = of_values.data();
    for (op_id o = 0; o < count; ++o) {
      const op_node& n = ops[o];
      if (n.def->role == op_role::parameter) continue;
      for (int r = 0; r < n.result_count; ++r) {
        sizes[n.result + r] = p.types[n.result + r].bytes();
        live.add(sizes[n.result + r]);
      }
      during[o] = saturating_add(live.value(), inside[o]);
      const value_id* const values = operands + n.operand_begin;
      bool dies = false;
      for (int i = 0; i < n.operand_count; ++i) {
        const value_id v = values[i];
        if (last_uses[v] != o || ops[producers[v]].def->role == op_role::parameter) continue;
        live.remove(sizes[v]);
        last_uses[v] = taken;  // not again, if it is an operand again
        dies = true;
      }
      for (int i = 0; dies && i < n.operand_count; ++i)
        if (last_uses[values[i]] == taken) last_uses[values[i]] = o;
      for (value_id v = n.result; v < n.result + n.result_count; ++v)
        if (last_uses[v] < 0) live.remove(sizes[v]);
    }
  }
};

}  // namespace partita
