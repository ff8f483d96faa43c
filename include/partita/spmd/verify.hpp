/// Invariants of device-local programs.
#pragma once

#include <partita/ir/verify.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita {

namespace detail {

/// The type that a collective gives for one operand.
constexpr tensor_type collective_type(const op_node& n, span<const std::int64_t> attrs,
                                      tensor_type t, const mesh& m) {
  const auto scale = [&](std::size_t from, bool gathers) {
    for (std::size_t i = from; i + 1 < attrs.size(); i += 2) {
      std::int64_t& extent = t.shape[static_cast<int>(attrs[i])];
      const std::int64_t size = m.size(static_cast<int>(attrs[i + 1]));
      extent = gathers ? extent * size : extent % size == 0 ? extent / size : -1;
    }
  };
  if (is(n, collective::all_gather)) scale(0, true);
  if (is(n, collective::all_slice)) scale(0, false);
  if (is(n, collective::reduce_scatter)) scale(1, false);
  if (is(n, collective::all_to_all))
    for (auto axis : attrs.subspan(2)) {
      const std::int64_t size = m.size(static_cast<int>(axis));
      std::int64_t& sliced = t.shape[static_cast<int>(attrs[1])];
      t.shape[static_cast<int>(attrs[0])] *= size;
      sliced = sliced % size == 0 ? sliced / size : -1;
    }
  return t;
}
constexpr failure verify_collectives(const program& p, const mesh& m) {
  failure f;
  for (op_id o = 0; o < p.op_count() && !f; ++o) {
    const op_node& n = p.op(o);
    for (const auto& r : p.regions_of(o)) f.record(verify_collectives(r, m));
    if (!n.def->collective) continue;
    for (int r = 0; r < n.result_count; ++r) {
      const tensor_type from = p.type(p.operand(o, r)), to = p.type(n.result + r);
      if (collective_type(n, p.attrs(o), from, m) != to)
        f.record("P001", "internal error: ", n.def->name, " takes ", from, " to ", to,
                 ", which its axes do not; please report");
    }
  }
  return f;
}

}  // namespace detail

/// Checks a device-local program: that of its ops, as `verify(program)` does, and that collectives
/// give the types that the sizes of their axes say.
constexpr failure verify(const device_program& d) {
  failure f = verify(d.local);
  f.record(detail::verify_collectives(d.local, d.mesh));
  return f;
}

}  // namespace partita
