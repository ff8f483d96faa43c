/// Completes a pipeline after its units are sharded: runs passes over each unit, adds calls and
/// orders them.
#pragma once

#include <concepts>

#include <partita/mpmd/calls.hpp>
#include <partita/mpmd/keep_gathered.hpp>
#include <partita/mpmd/sharded_units.hpp>
#include <partita/mpmd/units.hpp>
#include <partita/schedule/partition.hpp>

namespace partita::mpmd_detail {

/// The collectives of all calls of a step.
constexpr collectives count_calls(const pipelined& p) {
  collectives all;
  for (const auto& u : p.units) {
    const std::int64_t calls = u.inside ? p.microbatches : 1;
    for (const auto& note : u.notes) all.count(note.kind, saturating_multiply(note.times, calls));
  }
  return all;
}

/// Runs the passes over each unit separately: those that rewrite lowered programs, and those that
/// overlap collectives with kernels.
///
/// Errors    C001 and C004 the machine of an overlap, C003 a unit exceeds the memory bound, P001
///           internal error: a wrong device-local program (if that is checked)
constexpr void finish_units(pipelined& out) {
  const partition_options& options = out.options;
  const bool rewrites = options.passes.rewrite() || options.overlap.any();
  for (pipeline_unit& u : out.units) {
    out.error.record(options.overlap.options.validate(u.device.mesh));
    if (out.error) return;
    if (rewrites) {
      lowered l;
      l.device = static_cast<device_program&&>(u.device);
      l.notes = static_cast<vec<collective_note>&&>(u.notes);
      l.counts = u.counts;
      spmd_detail::run_passes(l, out.core.p, options.passes);
      out.error.record(l.error);
      if (!out.error) options.overlap.apply(l);
      u.device = static_cast<device_program&&>(l.device);
      u.notes = static_cast<vec<collective_note>&&>(l.notes);
      u.counts = l.counts;
    }
    if (const failure f = options.verifies() && !out.error ? verify(u.device) : failure(); f)
      out.error.record(
          "P001", "internal error: pipeline made a wrong device-local program: ", f.message.view());
  }
  if (rewrites) out.collectives = count_calls(out);
}

/// By slot: true if it holds a value of an iteration.
constexpr vec<char> find_repeated(const pipelined& p) {
  vec<char> repeated(p.values().types.size(), 0);
  for (value_id v = 0; v < p.source.value_count(); ++v)
    if (p.inside[p.source.producer(v)] != 0) repeated[p.slot_of[v]] = 1;
  return repeated;
}

/// See pipelined::next_slot.
constexpr vec<value_id> find_next_slots(const pipelined& p) {
  const vec<value_id> next = next_states(p.source);
  vec<value_id> slots;
  if (next.empty()) return slots;
  slots.resize(p.values().types.size(), -1);
  for (value_id v = 0; v < p.source.value_count(); ++v)
    if (next[v] >= 0) slots[p.slot_of[v]] = p.slot_of[next[v]];
  return slots;
}

/// Computes the calls of all units, their order, and the list of steps of each mesh.
///
/// Errors    those of sequence(), O007 deadlock, O124 a stage is on a different mesh than the order
///           requires
template <class Order>
constexpr void order_calls(pipelined& out, const vec<call_edge>& edges, const Order& order) {
  out.repeated = find_repeated(out);
  out.next_slot = find_next_slots(out);
  call_writer calls(out, edges);
  calls.add_calls();
  out.stages = calls.shape().stages;
  if constexpr (std::same_as<Order, pipeline_order>) {
    order.fits(calls.shape(), out.error);
    if (!out.error) calls.check_places(order, out.error);
  }
  if (!out.error) out.order = sequence(out.calls, calls.shape(), order, out.error);
  if (out.error) return;
  out.lists = lists_with_messages(out.calls, out.order, calls.messages());
  out.error.record(find_deadlock(out.calls, out.lists, out.channels));
}

}  // namespace partita::mpmd_detail
