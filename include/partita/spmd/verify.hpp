/// Invariants of device-local programs.
#pragma once

#include <partita/ir/verify.hpp>
#include <partita/spmd/device_program.hpp>

namespace partita {

namespace spmd_detail {

constexpr failure verify_collectives(const program& p, const mesh& m) {
  failure f;
  for (op_id o = 0; o < p.op_count() && !f; ++o) {
    const op_node& n = p.op(o);
    for (const auto& r : p.regions_of(o)) f.record(verify_collectives(r, m));
    if (!n.def->collective) continue;
    const collective what = p.collective_of(o);
    for (int r = 0; r < n.result_count; ++r) {
      const tensor_type from = p.type(p.operand(o, r)), to = p.type(n.result + r);
      if (from.element != to.element || what.after(from.shape, m) != to.shape)
        f.record("P001", "internal error: ", n.def->name, " takes ", from, " to ", to,
                 ", which its axes do not; please report");
    }
  }
  return f;
}

}  // namespace spmd_detail

/// Checks a device-local program: that of its ops, as `verify(program)` does, and that collectives
/// give the types that the sizes of their axes say.
constexpr failure verify(const device_program& d) {
  failure f = verify(d.local);
  f.record(spmd_detail::verify_collectives(d.local, d.mesh));
  return f;
}

}  // namespace partita
