/// What a program costs on one device: flops, bytes, peak of live memory.
#pragma once

#include <cstdint>
#include <partita/support/vec.hpp>

#include <partita/ir/program.hpp>

namespace partita {

/// Figures of one program; for a device-local program they are per device.
struct cost {
  std::int64_t flops = 0;           ///< floating-point operations, collectives not counted
  std::int64_t argument_bytes = 0;  ///< arguments, which stay alive throughout
  std::int64_t result_bytes = 0;
  std::int64_t peak_bytes = 0;        ///< arguments plus the largest sum of other live values
  std::int64_t collective_bytes = 0;  ///< operands of the collectives that communicate
};

/// One pass forward for flops and last uses, one for live memory: linear in ops.
constexpr cost estimate(const program& p) {
  cost c;
  vec<op_id> last_use(p.types.size(), -1);
  vec<tensor_type> operands;
  for (op_id o = 0; o < p.op_count(); ++o) {
    const op_node& n = p.op(o);
    for (value_id v : p.operands(o)) last_use[static_cast<std::size_t>(v)] = o;
    operands.clear();
    for (value_id v : p.operands(o)) operands.push_back(p.type(v));
    c.flops += n.def->flops({operands, p.type(n.result), p.attrs(o)});
    if (n.def->collective && n.def->name != "all_slice")
      c.collective_bytes += p.type(p.operand(o, 0)).bytes();
  }
  for (const auto& out : p.outputs) {
    last_use[static_cast<std::size_t>(out.value)] = p.op_count();
    c.result_bytes += p.type(out.value).bytes();
  }
  for (int i = 0; i < p.input_count(); ++i) c.argument_bytes += p.input_type(i).bytes();
  std::int64_t live = 0, peak = 0;
  const auto is_argument = [&](value_id v) { return p.is(p.producer(v), op_role::parameter); };
  for (op_id o = 0; o < p.op_count(); ++o) {
    const op_node& n = p.op(o);
    if (n.def->role == op_role::parameter) continue;
    live += p.type(n.result).bytes();
    if (live > peak) peak = live;
    const auto operand_list = p.operands(o);
    for (std::size_t i = 0; i < operand_list.size(); ++i) {
      const value_id v = operand_list[i];
      bool again = false;
      for (std::size_t j = 0; j < i; ++j) again = again || operand_list[j] == v;
      if (!again && last_use[static_cast<std::size_t>(v)] == o && !is_argument(v))
        live -= p.type(v).bytes();
    }
    if (last_use[static_cast<std::size_t>(n.result)] < 0) live -= p.type(n.result).bytes();
  }
  c.peak_bytes = c.argument_bytes + peak;
  return c;
}

}  // namespace partita
