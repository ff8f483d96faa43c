/// Inputs and outputs that share memory or are in host memory.
#pragma once

#include <partita/ir/program.hpp>
#include <partita/ir/wires.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Returns, for each output, the input whose memory it may reuse, or -1. An output with the name
/// and the type of an input is its next state and reuses its memory. If a module marks arguments as
/// donated, only those are reused. A donated argument without a next state passes its memory to the
/// result that the module names, or else to the first result of its type that reuses no other
/// memory.
///
/// Cost      linear in inputs and outputs
/// Source    JAX, `tf.aliasing_output` and `jax.buffer_donor`
constexpr vec<int> reused_inputs(const program& p) {
  vec<int> by_output(p.outputs.size(), -1);
  const bool told = p.interface.says_donations();
  name_table inputs(p.inputs.size());
  for (int i = 0; i < p.input_count(); ++i) inputs.insert(p.input_name(i), i);
  vec<char> taken(p.inputs.size(), 0);
  const auto give = [&](int i, int k) {
    by_output[k] = i;
    taken[i] = 1;
  };
  for (int k = 0; k < p.output_count(); ++k) {
    const int i = inputs.find(p.output_name(k));
    if (i < 0 || taken[i] != 0 || p.input_type(i) != p.output_type(k)) continue;
    if (!told || p.interface.donated(i)) give(i, k);
  }
  if (!told) return by_output;
  const auto fits = [&](int i, int k) {
    return k >= 0 && k < p.output_count() && by_output[k] < 0 &&
           p.input_type(i) == p.output_type(k) && inputs.find(p.output_name(k)) < 0;
  };
  for (int i = 0; i < p.input_count(); ++i) {
    if (taken[i] != 0 || !p.interface.donated(i)) continue;
    int k = p.interface.inputs[i].alias;
    if (!fits(i, k))
      for (k = 0; k < p.output_count() && !fits(i, k);) ++k;
    if (fits(i, k)) give(i, k);
  }
  return by_output;
}

/// Returns, for each input, the number of its memory_space, in a program that was not read from a
/// module: 0, the device's memory, unless all ops that read the input only copy it to another
/// memory. Such an input needs no device memory. It is in the host memory that they name; if they
/// all copy it to the device, it is in pinned memory, number 1. The list is empty if no op copies.
///
/// Cost      linear in ops
constexpr vec<std::int64_t> input_memories(const program& p) {
  vec<std::int64_t> memory;
  if (!p.any_placed || p.interface.known()) return memory;
  constexpr std::int64_t unread = -2, copied = -1, device = 0;
  vec<std::int64_t> of(p.types.size(), unread);
  for (op_id o = 0; o < p.op_count(); ++o) {
    const bool copies = p.op(o).def->chooses_memory;
    for (const value_id v : p.operands(o)) {
      const std::int64_t to = !copies ? device : p.attrs(o)[0] == 0 ? copied : p.attrs(o)[0];
      if (of[v] < 0 && to != device)
        of[v] = of[v] > to ? of[v] : to;
      else if (to != copied && of[v] != to)
        of[v] = device;
    }
  }
  for (const auto& out : p.outputs) of[out.value] = device;
  for (const value_id v : p.inputs)
    memory.push_back(of[v] == copied ? 1 : of[v] == unread ? device : of[v]);
  return memory;
}

/// Returns, for each value, true if it is in host memory: an argument that the module places there
/// or that ops only copy from or to it (see input_memories), the result of an op that places it
/// there, or the result of a nested program that returns such a value. The list is empty if no
/// value is in host memory.
///
/// Cost      linear in ops, those of nested programs included
constexpr vec<char> values_on_host(const program& p) {
  vec<char> on_host;
  const auto add = [&](value_id v) {
    on_host.resize(p.types.size(), 0);
    on_host[v] = 1;
  };
  for (int i = 0; i < static_cast<int>(p.interface.inputs.size()) && i < p.input_count(); ++i)
    if (p.interface.on_host(i)) add(p.inputs[i]);
  const vec<std::int64_t> memories = input_memories(p);
  for (std::size_t i = 0; i < memories.size(); ++i)
    if (memories[i] != 0) add(p.inputs[i]);
  for (op_id o = 0; p.any_placed && o < p.op_count(); ++o) {
    const op_node& n = p.ops.data()[o];
    if (n.def->chooses_memory && p.attrs(o)[0] != 0) add(n.result);
    if (n.def->role == op_role::wire && !on_host.empty())  // (in a flat program)
      for (const value_id v : p.operands(o))
        if (on_host[v] != 0 && n.result_count > 0) add(n.result);
    if (n.region_count == 0) continue;
    vec<vec<char>> inside;
    bool any = false;
    for (const program& r : p.regions_of(o)) {
      inside.push_back(values_on_host(r));
      any = any || !inside.back().empty();
    }
    if (!any) continue;
    wire_list list;
    n.def->wires(p, o, list);
    for (const wire& each : list.wires)
      for (const wire_end& from : each.ends) {
        if (from.kind != wire_end::output || inside[from.region].empty() ||
            inside[from.region][p.region(o, from.region).outputs[from.index].value] == 0)
          continue;
        for (const wire_end& to : each.ends)
          if (to.kind == wire_end::result) add(n.result + to.index);
      }
  }
  return on_host;
}

}  // namespace partita
