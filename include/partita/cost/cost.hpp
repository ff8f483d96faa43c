/// What a program costs on one device: flops, bytes, peak of live memory.
#pragma once

#include <cstdint>
#include <partita/support/vec.hpp>

#include <partita/ir/wires.hpp>

namespace partita {

/// Figures of one program; for a device-local program they are per device.
struct cost {
  std::int64_t flops = 0;           ///< floating-point operations, collectives not counted
  std::int64_t bytes = 0;           ///< read and written by all ops but collectives
  std::int64_t argument_bytes = 0;  ///< arguments, which stay alive throughout
  std::int64_t result_bytes = 0;
  std::int64_t peak_bytes = 0;        ///< arguments plus the largest sum of other live values
  std::int64_t collective_bytes = 0;  ///< operands of the collectives that communicate
};

/// One pass forward for flops and last uses, one for live memory: linear in ops. Nested programs
/// count as often as their op tells (the body of a `while` once), of branches the dearest.
constexpr cost estimate(const program& p) {
  cost c;
  vec<op_id> last_use(p.types.size(), -1);
  vec<tensor_type> operands, results;
  vec<std::int64_t> inside(p.ops.size(), 0);  // memory that nested programs need
  const op_id count = p.op_count();
  for (op_id o = 0; o < count; ++o) {
    const op_node& n = p.ops[o];
    operands.clear();
    for (value_id v : p.operands(o)) {
      last_use[v] = o;
      operands.push_back(p.types[v]);
    }
    if (n.region_count > 0) {
      wire_list list;
      n.def->wires(p, o, list);
      cost dearest;
      for (const auto& r : p.regions_of(o)) {
        const cost each = estimate(r);
        const std::int64_t beyond = each.peak_bytes - each.argument_bytes;
        if (beyond > inside[o]) inside[o] = beyond;
        if (each.flops >= dearest.flops) dearest = each;
      }
      c.flops += list.trips * dearest.flops;
      c.bytes += list.trips * dearest.bytes;
      c.collective_bytes += list.trips * dearest.collective_bytes;
      continue;
    }
    if (n.def->role == op_role::parameter) continue;
    results.clear();
    for (int r = 1; r < n.result_count; ++r) results.push_back(p.type(n.result + r));
    const cost_context each{
        operands, p.type(n.result), p.attrs(o), {results.data(), results.size()}};
    c.flops += n.def->flops(each);
    if (!n.def->collective) c.bytes += n.def->bytes(each);
    if (n.def->collective && n.def->name != "all_slice")
      c.collective_bytes += p.type(p.operand(o, 0)).bytes();
  }
  for (const auto& out : p.outputs) {
    last_use[out.value] = p.op_count();
    c.result_bytes += p.type(out.value).bytes();
  }
  for (int i = 0; i < p.input_count(); ++i) c.argument_bytes += p.input_type(i).bytes();
  std::int64_t live = 0, peak = 0;
  const auto is_argument = [&](value_id v) { return p.is(p.producer(v), op_role::parameter); };
  for (op_id o = 0; o < count; ++o) {
    const op_node& n = p.ops[o];
    if (n.def->role == op_role::parameter) continue;
    for (int r = 0; r < n.result_count; ++r) live += p.type(n.result + r).bytes();
    const std::int64_t now = live + inside[o];
    if (now > peak) peak = now;
    const auto operand_list = p.operands(o);
    for (std::size_t i = 0; i < operand_list.size(); ++i) {
      const value_id v = operand_list[i];
      bool again = false;
      for (std::size_t j = 0; j < i; ++j) again = again || operand_list[j] == v;
      if (!again && last_use[v] == o && !is_argument(v)) live -= p.type(v).bytes();
    }
    for (value_id v = n.result; v < n.result + n.result_count; ++v)
      if (last_use[v] < 0) live -= p.type(v).bytes();
  }
  c.peak_bytes = c.argument_bytes + peak;
  return c;
}

}  // namespace partita
