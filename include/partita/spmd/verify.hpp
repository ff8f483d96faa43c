/// Invariants of device-local programs.
#pragma once

#include <initializer_list>

#include <partita/ir/verify.hpp>
#include <partita/spmd/device_program.hpp>

namespace partita {

namespace spmd_detail {

/// True if all axes belong to the mesh and all dimensions are below `rank`.
constexpr bool names_known(const collective& c, const mesh& m, int rank) {
  bool known = c.gathered < rank && c.sliced < rank;
  for (const auto& l : {c.axes, c.from})
    for (const auto& e : l) known = known && e.axis < m.rank && e.dim < rank;
  return known;
}

constexpr failure verify_collectives(const program& p, const mesh& m) {
  failure f;
  for (op_id o = 0; o < p.op_count() && !f; ++o) {
    const op_node& n = p.op(o);
    for (const auto& r : p.regions_of(o)) f.record(verify_collectives(r, m));
    if (!n.def->collective) continue;
    const collective what = p.collective_of(o);
    if (!names_known(what, m, p.type(n.result).shape.rank) || !what.is_consistent())
      f.record("P001", "internal error: the axes and dimensions of op ", o, " (", n.def->name,
               ") do not fit together; please report");
    for (int r = 0; r < n.result_count && !f; ++r) {
      const tensor_type from = p.type(p.operand(o, r)), to = p.type(n.result + r);
      if (from.element != to.element || what.after(from.shape, m) != to.shape)
        f.record("P001", "internal error: ", n.def->name, " takes ", from, " to ", to,
                 ", but its axes do not; please report");
    }
  }
  return f;
}

}  // namespace spmd_detail

/// Checks a device-local program: the invariants of its ops, as `verify(program)` does, and that
/// the types of each collective agree with the sizes of its axes. Returns P001, an internal error,
/// if not.
constexpr failure verify(const device_program& d) {
  failure f = verify(d.local);
  f.record(spmd_detail::verify_collectives(d.local, d.mesh));
  return f;
}

}  // namespace partita
