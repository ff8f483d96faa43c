/// The memory that the values of a program take while each op runs.
#pragma once

#include <cstdint>

#include <partita/ir/fusion.hpp>
#include <partita/ir/next_states.hpp>
#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The live memory of a program, in bytes, for a compiler that fuses loops (fused_kernels). Only
/// values that kernels write to memory count. A value is live from the kernel that computes it to
/// the last kernel that reads it. A kernel holds its operands and its results at the same time,
/// except that a result may overwrite an operand of its size (op_def::in_place) that is not needed
/// later. Arguments stay live throughout. An output that reuses the memory of an input (see
/// reused_inputs) is stored there, unless the input is still needed at that point. Values in host
/// memory count as zero. Figures saturate at `saturated`.
///
/// Source    the rule about inputs: donated buffers, as in XLA
struct live_bytes {
  std::int64_t arguments = 0;
  /// By op: bytes of other live values, and what nested programs need beyond their arguments.
  vec<std::int64_t> during;
  /// By op: the part of nested programs alone, their arguments not counted.
  vec<std::int64_t> inside;
  /// By value: the op whose kernel reads it last; the number of ops if it is an output, -1 if
  /// nothing reads it or it is never in memory.
  vec<op_id> last_use;
  vec<char> donated;      ///< by value: true if it is stored in an input's memory or in host memory
  vec<char> overwritten;  ///< by value: true if its last reader writes its result there

  /// Returns the peak memory, arguments included.
  constexpr std::int64_t peak() const { return saturating_add(arguments, beyond_arguments()); }
  /// Returns the peak memory without the arguments.
  constexpr std::int64_t beyond_arguments() const {
    std::int64_t most = 0;
    const std::int64_t* const all = during.data();
    for (std::size_t o = 0; o < during.size(); ++o)
      if (all[o] > most) most = all[o];
    return most;
  }

  /// Cost      linear in ops, those of nested programs included
  constexpr explicit live_bytes(const program& p)
      : during(p.ops.size(), 0),
        inside(p.ops.size(), 0),
        last_use(p.types.size(), -1),
        donated(p.types.size(), 0),
        overwritten(p.types.size(), 0) {
    for (op_id o = 0; !p.regions.empty() && o < p.op_count(); ++o)
      for (const auto& r : p.regions_of(o)) {
        const std::int64_t beyond = live_bytes(r).beyond_arguments();
        if (beyond > inside[o]) inside[o] = beyond;
      }
    fused_kernels kernels(p);
    find(p, kernels);
  }
  /// Uses known values of `inside`. Cost: linear in the program's own ops.
  constexpr live_bytes(const program& p, const vec<std::int64_t>& nested)
      : live_bytes(p, nested, fused_kernels(p)) {}
  /// Uses known kernels, too.
  constexpr live_bytes(const program& p, const vec<std::int64_t>& nested, fused_kernels&& kernels)
      : live_bytes(p, nested, kernels) {}
  constexpr live_bytes(const program& p, const vec<std::int64_t>& nested, fused_kernels& kernels)
      : during(p.ops.size(), 0),
        inside(nested),
        last_use(p.types.size(), -1),
        donated(p.types.size(), 0),
        overwritten(p.types.size(), 0) {
    find(p, kernels);
  }

 private:
  template <class Elsewhere>
  constexpr void find_donated(const program& p, const fused_kernels& kernels,
                              const Elsewhere& is_elsewhere) {
    const vec<int> reused = reused_inputs(p);
    for (int k = 0; k < p.output_count(); ++k) {
      const int i = reused[k];
      if (i < 0) continue;
      const value_id to = kernels.root(p.outputs[k].value), from = p.inputs[i];
      const op_id made = p.producers[to];
      const bool free =
          last_use[from] < made || (last_use[from] == made && p.ops[made].def->in_place);
      if (p.is(made, op_role::parameter) || p.types[to] != p.types[from] || !free ||
          is_elsewhere(from) != is_elsewhere(to))
        continue;
      donated[to] = 1;
    }
  }
  /// Returns the operand that an op updates, or -1 if its results can overwrite any operand.
  static constexpr value_id updated(const program& p, const fused_kernels& kernels,
                                    const op_node& n) {
    if (n.def->elementwise || n.def->role == op_role::control) return -1;
    return kernels.root(p.operand_list[n.operand_begin]);
  }
  /// Overwrites a dying value of this size with a result, if there is one; returns whether it did.
  /// If `only` is not -1, only that value may be overwritten.
  constexpr bool take(const program& p, vec<value_id>& dying, std::int64_t bytes, value_id only,
                      level& live) {
    for (value_id& v : dying) {
      if (v < 0 || p.types[v].bytes() != bytes || (only >= 0 && v != only)) continue;
      live.remove(bytes);
      overwritten[v] = 1;
      v = -1;
      return true;
    }
    return false;
  }
  /// Calls f(value) for each value, other than arguments, that an op which only passes values on
  /// keeps alive until then.
  template <class F>
  static constexpr void for_each_held(const program& p, const fused_kernels& kernels, op_id o,
                                      const F& f) {
    const op_node& n = p.ops[o];
    if (!n.def->passes_on) return;
    for (int i = n.result_count; i < n.operand_count; ++i) {
      const value_id v = kernels.root(p.operand_list[n.operand_begin + i]);
      if (!p.is(p.producers[v], op_role::parameter)) f(v);
    }
  }
  constexpr void find(const program& p, fused_kernels& kernels) {
    const op_id count = p.op_count();
    for (op_id o = 0; o < count; ++o)
      if (kernels.runs(o))
        kernels.for_each_read(o, [&](value_id v) { last_use[v] = o; });
      else
        for_each_held(p, kernels, o, [&](value_id v) { last_use[v] = o; });
    const vec<char> on_host = values_on_host(p);
    const auto is_elsewhere = [&](value_id v) { return !on_host.empty() && on_host[v] != 0; };
    find_donated(p, kernels, is_elsewhere);
    for (const auto& out : p.outputs) last_use[kernels.root(out.value)] = count;
    for (int i = 0; i < p.input_count(); ++i)
      if (!is_elsewhere(p.inputs[i]))
        arguments = saturating_add(arguments, p.input_type(i).bytes());
    if (!on_host.empty())  // (neither values in host memory nor those in an input's memory count)
      for (value_id v = 0; v < p.value_count(); ++v)
        if (on_host[v] != 0) donated[v] = 1;
    level live;
    vec<value_id> dying;
    for (op_id o = 0; o < count; ++o) {
      if (!kernels.runs(o)) {
        during[o] = live.value();
        for_each_held(p, kernels, o, [&](value_id v) {
          if (last_use[v] == o && !is_elsewhere(v)) live.remove(p.types[v].bytes());
        });
        continue;
      }
      const op_node& n = p.ops[o];
      dying.clear();
      kernels.for_each_read(o, [&](value_id v) {
        if (last_use[v] == o && p.ops[p.producers[v]].def->role != op_role::parameter &&
            !is_elsewhere(v))
          dying.push_back(v);
      });
      level now = live;
      for (value_id v = n.result; v < n.result + n.result_count; ++v) {
        if (donated[v] != 0) continue;
        const std::int64_t bytes = p.types[v].bytes();
        now.add(bytes);
        live.add(bytes);
        if (n.def->in_place && take(p, dying, bytes, updated(p, kernels, n), live))
          now.remove(bytes);
      }
      during[o] = saturating_add(now.value(), inside[o]);
      for (value_id v : dying)
        if (v >= 0) live.remove(p.types[v].bytes());
      for (value_id v = n.result; v < n.result + n.result_count; ++v)
        if (last_use[v] < 0 && donated[v] == 0) live.remove(p.types[v].bytes());
    }
  }
};

}  // namespace partita
