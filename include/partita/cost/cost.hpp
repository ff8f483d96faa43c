/// What a program costs on one device: flops, bytes, peak of live memory.
#pragma once

#include <cstdint>

#include <partita/ir/live_bytes.hpp>
#include <partita/ir/wires.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Figures of one program; for a device-local program they are per device. They stop at `saturated`
/// (2^63 - 1), which stands for that much or more.
struct cost {
  std::int64_t flops = 0;           ///< floating-point operations, collectives not counted
  std::int64_t bytes = 0;           ///< read and written by all ops but collectives
  std::int64_t argument_bytes = 0;  ///< arguments, which stay alive throughout
  std::int64_t result_bytes = 0;
  std::int64_t peak_bytes = 0;        ///< arguments plus the largest sum of other live values
  std::int64_t collective_bytes = 0;  ///< sent by a device in collectives, see bytes_sent
  /// Sent by a device, by axis of the program's mesh; a collective over several axes goes along one
  /// after the other. See messages_sent.
  std::int64_t messages[max_axes] = {};
};

namespace cost_detail {

constexpr void add_collective(const collective& what, const mesh& m,
                              const vec<tensor_type>& operands, cost& c) {
  std::int64_t bytes = 0;
  for (const auto& t : operands) bytes = saturating_add(bytes, t.bytes());
  c.collective_bytes =
      saturating_add(c.collective_bytes, bytes_sent(what.kind, what.members(m), bytes));
  for (const auto& e : what.axes)
    c.messages[e.axis] =
        saturating_add(c.messages[e.axis], messages_sent(what.kind, m.size(e.axis)));
}

/// Adds flops and bytes of a program. Nested programs count as often as their op tells (those of a
/// `while` once), of branches the greatest of each figure.
constexpr void add_work(const program& p, const mesh& m, cost& c) {
  vec<tensor_type> operands, results;
  // (Few calls: `partition` asks for this.)
  const op_node* const ops = p.ops.data();
  const tensor_type* const types = p.types.data();
  for (op_id o = 0, count = p.op_count(); o < count; ++o) {
    const op_node& n = ops[o];
    if (n.def->role == op_role::parameter) continue;
    if (n.region_count > 0) {
      wire_list list;
      n.def->wires(p, o, list);
      const auto join = [&](std::int64_t a, std::int64_t b) {
        return !list.branches ? saturating_add(a, b) : a > b ? a : b;
      };
      cost once;
      for (const auto& r : p.regions_of(o)) {
        cost each;
        add_work(r, m, each);
        once.flops = join(once.flops, each.flops);
        once.bytes = join(once.bytes, each.bytes);
        once.collective_bytes = join(once.collective_bytes, each.collective_bytes);
        for (int a = 0; a < max_axes; ++a)
          once.messages[a] = join(once.messages[a], each.messages[a]);
      }
      const auto count = [&](std::int64_t& sum, std::int64_t each) {
        sum = saturating_add(sum, saturating_multiply(list.trips, each));
      };
      count(c.flops, once.flops);
      count(c.bytes, once.bytes);
      count(c.collective_bytes, once.collective_bytes);
      for (int a = 0; a < max_axes; ++a) count(c.messages[a], once.messages[a]);
      continue;
    }
    operands.clear();
    const value_id* const values = p.operand_list.data() + n.operand_begin;
    PARTITA_WORK(n.operand_count);
    for (int i = 0; i < n.operand_count; ++i) operands.push_back(types[values[i]]);
    cost_context each{operands, types[n.result], p.attrs(o)};
    if (n.result_count > 1) {
      results.clear();
      for (int r = 1; r < n.result_count; ++r) results.push_back(types[n.result + r]);
      each.more = {results.data(), results.size()};
    }
    c.flops = saturating_add(c.flops, n.def->flops(each));
    if (!n.def->collective)
      c.bytes = saturating_add(c.bytes, n.def->bytes(each));
    else
      add_collective(p.collective_of(o), m, operands, c);
  }
}

constexpr cost estimated(const program& p, const mesh& m) {
  cost c;
  add_work(p, m, c);
  for (const auto& out : p.outputs)
    c.result_bytes = saturating_add(c.result_bytes, p.type(out.value).bytes());
  const live_bytes live(p);
  c.argument_bytes = live.arguments;
  c.peak_bytes = live.peak();
  return c;
}

}  // namespace cost_detail

/// Of a program without collectives. One pass forward for flops and bytes, one for live memory:
/// linear in ops.
constexpr cost estimate(const program& p) { return cost_detail::estimated(p, {}); }
/// Per device; independent of how many there are.
constexpr cost estimate(const device_program& d) { return cost_detail::estimated(d.local, d.mesh); }

}  // namespace partita
