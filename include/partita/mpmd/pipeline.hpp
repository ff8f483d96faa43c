/// Pipelines: named parts of a step on several meshes, microbatches one behind the other.
///
/// Source    Shardy:MPMD; GPipe, arXiv:1811.06965
#pragma once

#include <concepts>
#include <cstdint>

#include <partita/mpmd/calls.hpp>
#include <partita/mpmd/split_sums.hpp>
#include <partita/mpmd/units.hpp>

namespace partita {

/// How a step is cut and in which order its parts run.
struct pipeline_options {
  assignment where = {};  ///< named parts to meshes and stages
  std::int64_t microbatches = 1;
  vec<microbatch_entry> batch = {};
  bool split = false;  ///< backward units in two parts
  channel_options channels = {};
};

namespace mpmd_detail {

/// What goes into an iteration or out of it is made in one place.
constexpr void keep_what_crosses(const program& p, assigned_program& given) {
  for (op_id o = 0; o < p.op_count(); ++o)
    if ((enters(p.op(o)) || leaves(p.op(o))) && p.op(o).operand_count > 0)
      given.free[p.producer(p.operand(o, 0))] = 0;
}

}  // namespace mpmd_detail

/// Cuts a step into units and orders their calls. `order`: a pipeline_order, a key, a comparator or
/// a table, see sequence().
///
/// At run time a mistake is thrown as `error`, in constant evaluation it is kept in
/// `pipelined::error`.
///
/// Errors    those of microbatch(), to_mpmd() and sequence(); O007 deadlock; O120 and O121 named
///           parts and the loop, O122 an op inside of the loop without a unit, O123 a stage that
///           would run twice, O124 a stage on another mesh than the order has it
template <class Order>
constexpr pipelined pipeline(const program& p, const topology& t, const Order& order,
                             const pipeline_options& options) {
  pipelined out;
  out.topology = t;
  out.channels = options.channels;
  out.microbatches = static_cast<int>(options.microbatches);
  bool split = options.split;
  if constexpr (std::same_as<Order, pipeline_order>) split = split || order.splits;
  const auto finish = [&]() -> pipelined& {
    out.error.raise();
    return out;
  };
  vec<schedule_detail::kept_microbatch_entry> batch;
  for (const auto& e : options.batch) batch.push_back(schedule_detail::kept_microbatch_entry(e));
  one_microbatch one = cut_into_microbatches(p, options.microbatches, batch, options.where.names);
  out.notes = one.notes;
  if (one.error)  // a wrong name tells more than what follows from it
    out.error.record(mpmd_detail::assigner(p, t, options.where).run().error);
  out.error.record(one.error);
  if (out.error) return finish();
  mpmd_detail::assigned_program given = mpmd_detail::assigner(one.p, t, options.where).run();
  out.error.record(given.error);
  if (out.error) return finish();
  if (out.microbatches > 1 && mpmd_detail::sum_splitter(one, given.mesh).run())
    given = mpmd_detail::assigner(one.p, t, options.where).run();
  given.inside = one.inside;
  mpmd_detail::keep_what_crosses(one.p, given);
  const auto where = mpmd_detail::inference(one.p, t, options.where, given).run();
  mpmd_detail::placed_program placed = mpmd_detail::chain_splitter(one.p, given, where).run();
  out.error.record(placed.error);
  if (out.error) return finish();
  out.input_mesh = placed.input_mesh;
  out.output_mesh = placed.output_mesh;
  mpmd_detail::unit_writer writer(out, placed, split);
  writer.run();
  out.source = static_cast<program&&>(placed.p);
  out.inside = static_cast<vec<char>&&>(writer.inside_);
  if (out.error) return finish();
  mpmd_detail::call_writer calls(out, writer.edges);
  calls.add_calls();
  out.stages = calls.shape().stages;
  if constexpr (std::same_as<Order, pipeline_order>) {
    order.fits(calls.shape(), out.error);
    if (!out.error) calls.check_places(order, out.error);
  }
  if (!out.error) out.order = sequence(out.calls, calls.shape(), order, out.error);
  if (out.error) return finish();
  out.lists = lists_with_messages(out.calls, out.order, calls.messages());
  out.error.record(find_deadlock(out.calls, out.lists, options.channels));
  return finish();
}

}  // namespace partita
