/// Devices whose operands of an op are equal share its results.
#pragma once

#include <partita/prove/elements/tensors.hpp>

namespace partita::prove_detail::elements {

/// True if running the op is less work than comparing the operands of devices.
constexpr bool takes_little(const program& p, op_id o, const vec<tensors>& of) {
  const std::uint64_t id = p.op(o).def->id;
  return (id == def<op::slice>.id || id == def<op::dynamic_slice>.id) &&
         of[p.op(o).result].size() < of[p.operand(o, 0)].size() / 8;
}
/// A fingerprint of a few elements of each operand, which distinguishes most devices.
constexpr fingerprint some_operands_on(const program& p, op_id o, const vec<tensors>& of,
                                       std::int64_t device) {
  drawing d(8);
  for (const value_id v : p.operands(o)) {
    const std::int64_t step = 1 + of[v].size() / 16;
    for (std::int64_t n = 0; n < of[v].size(); n += step) d.add(of[v].on(device)[n].of);
  }
  return d.drawn();
}
constexpr bool is_given_alike(const program& p, op_id o, const vec<tensors>& of,
                              std::int64_t device, std::int64_t other) {
  for (const value_id v : p.operands(o))
    for (std::int64_t n = 0; n < of[v].size(); ++n)
      if (!(of[v].on(device)[n] == of[v].on(other)[n])) return false;
  return true;
}
constexpr void copy(const program& p, op_id o, vec<tensors>& of, std::int64_t from,
                    std::int64_t to) {
  for (int r = 0; r < p.op(o).result_count; ++r) {
    tensors& made = of[p.op(o).result + r];
    for (std::int64_t n = 0; n < made.size(); ++n) made.on(to)[n] = made.on(from)[n];
  }
}

}  // namespace partita::prove_detail::elements
