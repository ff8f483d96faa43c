/// The cost of a program on one device: FLOPs, bytes, peak of live memory.
#pragma once

#include <cstdint>

#include <partita/ir/live_bytes.hpp>
#include <partita/ir/wires.hpp>
#include <partita/op/registry.hpp>
#include <partita/op/trip_count.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Loops with an unknown number of iterations: for each figure, the number of such loops that it
/// depends on. Figures count one iteration of each.
struct unknown_loops {
  int loops = 0;        ///< all of them; simulated times depend on each
  int flops = 0;        ///< the loops that `cost::flops` depends on
  int bytes = 0;        ///< likewise `cost::bytes`
  int collectives = 0;  ///< likewise `cost::collective_bytes`, `cost::messages` and collectives

  constexpr void add(const unknown_loops& other) {
    loops += other.loops;
    flops += other.flops;
    bytes += other.bytes;
    collectives += other.collectives;
  }
  /// Returns the note about times alone; empty if all lengths are known.
  constexpr text note_on_times() const {
    if (loops == 0) return {};
    return concat("times count one iteration of ", loops, loops == 1 ? " loop" : " loops",
                  " of unknown length");
  }
  /// Returns the note in reports: which figures count one iteration, and for which number of loops.
  /// Empty if all lengths are known.
  constexpr text note() const {
    if (loops == 0) return {};
    text out(loops == 1 ? "the length of 1 loop is unknown" : "");
    if (loops > 1) out << "the lengths of " << loops << " loops are unknown";
    out << "; these figures count one iteration of " << (loops == 1 ? "it" : "each") << ": times";
    if (flops > 0) out << ", flop";
    if (bytes > 0) out << ", bytes read and written";
    if (collectives > 0) out << ", collectives, bytes sent, messages";
    return out;
  }
};

/// Figures of one program; for a device-local program they are per device. They saturate at
/// `saturated` (2^63 - 1), which means that value or more.
struct cost {
  std::int64_t flops = 0;           ///< floating-point operations, collectives not counted
  std::int64_t bytes = 0;           ///< read and written by all ops but collectives
  std::int64_t argument_bytes = 0;  ///< arguments, which stay alive throughout
  std::int64_t result_bytes = 0;
  std::int64_t peak_bytes = 0;        ///< arguments plus the largest sum of other live values
  std::int64_t collective_bytes = 0;  ///< sent by a device in collectives, see bytes_sent
  /// Messages that a device sends, by axis of the program's mesh. A collective over several axes
  /// runs axis by axis. See messages_sent.
  std::int64_t messages[max_axes] = {};
  unknown_loops unknown;
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

/// Adds FLOPs and bytes of a program. A nested program counts once for each time that its op runs
/// it (once for a `while` of unknown length). Of branches, the maximum of each figure counts.
/// `inputs` are known values of the program's inputs.
constexpr void add_work(const program& p, const mesh& m, cost& c,
                        span<const known_integer> inputs = {}) {
  vec<tensor_type> operands, results;
  // Raw pointers keep the number of calls low: `partition` evaluates this at compile time.
  const op_node* const ops = p.ops.data();
  const tensor_type* const types = p.types.data();
  for (op_id o = 0, count = p.op_count(); o < count; ++o) {
    const op_node& n = ops[o];
    if (n.def->role == op_role::parameter) continue;
    if (n.region_count > 0) {
      wire_list list;
      list.inputs = inputs;
      n.def->wires(p, o, list);
      const auto join = [&](std::int64_t a, std::int64_t b) {
        return !list.branches ? saturating_add(a, b) : a > b ? a : b;
      };
      cost once;
      for (int r = 0; r < n.region_count; ++r) {
        cost each;
        add_work(p.region(o, r), m, each, known_inputs(p, o, r, list));
        once.flops = join(once.flops, each.flops);
        once.bytes = join(once.bytes, each.bytes);
        once.collective_bytes = join(once.collective_bytes, each.collective_bytes);
        for (int a = 0; a < max_axes; ++a)
          once.messages[a] = join(once.messages[a], each.messages[a]);
        once.unknown.add(each.unknown);
      }
      if (list.unknown_trips)
        once.unknown.add({1, once.flops > 0, once.bytes > 0, once.collective_bytes > 0});
      if (list.trips > 0) c.unknown.add(once.unknown);
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

/// Returns the cost of a program without collectives.
///
/// Cost      linear in ops: one pass for FLOPs and bytes, one for live memory
constexpr cost estimate(const program& p) { return cost_detail::estimated(p, {}); }
/// Returns the cost for each device of a device-local program.
///
/// Cost      linear in ops, independent of the number of devices
constexpr cost estimate(const device_program& d) { return cost_detail::estimated(d.local, d.mesh); }

}  // namespace partita
