/// Pipelines: named parts of a step run on several meshes, one microbatch after another.
///
/// Source    Shardy:MPMD; GPipe, arXiv:1811.06965
#pragma once

#include <concepts>
#include <cstdint>

#include <boost/hana/tuple.hpp>

#include <partita/mpmd/finish_pipeline.hpp>
#include <partita/mpmd/pipeline_memory.hpp>
#include <partita/mpmd/replicated_on_meshes.hpp>
#include <partita/mpmd/split_sums.hpp>
#include <partita/mpmd/staged_pipeline.hpp>

namespace partita {

/// How a step is cut, and in which order its parts run.
struct pipeline_options {
  assignment where = {};  ///< named parts to meshes and stages
  std::int64_t microbatches = 1;
  vec<microbatch_entry> batch = {};
  bool split = false;  ///< backward units in two parts
  channel_options channels = {};
  /// If true, values that units use in another sharding than they are stored in are gathered once
  /// per step, before the microbatches, and kept. Otherwise each call gathers them.
  bool keep_gathered = false;
  bool check_memory = true;  ///< true if exceeding the memory of a mesh's devices is an error
};

namespace mpmd_detail {

/// Marks the ops that move values into or out of an iteration: each is computed in one place.
constexpr void keep_what_crosses(const program& p, assigned_program& given) {
  op_id o = 0;
  for (const op_node& n : p.ops) {
    if ((enters(n) || leaves(n)) && n.operand_count > 0)
      given.free[p.producer(p.operand(o, 0))] = 0;
    if (is_next_state(n)) given.free[o] = 0;
    ++o;
  }
}

/// The meshes on which each op of a placed program runs. Recomputed ops run wherever they are used.
constexpr vec<mesh_set> meshes_of_ops(const placed_program& placed) {
  const program& p = placed.p;
  vec<mesh_set> on = placed.on;
  for (int i = 0; i < p.input_count(); ++i)
    on[p.producer(p.inputs[i])] |= mesh_set::of(placed.input_mesh[i]);
  for (op_id o = p.op_count(); o-- > 0;)
    for (const value_id v : p.operands(o)) {
      const op_id from = p.producer(v);
      if (placed.on[from].empty()) on[from] |= on[o];
    }
  return on;
}

/// The core program of a pipeline over the axes of all meshes.
///
/// Errors    M005 the least common multiples of their sizes are too large
/// `on`: by op, see meshes_of_ops.
constexpr core_program pipeline_core(const placed_program& placed, const vec<mesh_set>& on,
                                     const topology& t, const passes& rules, failure& error) {
  const mesh all = union_mesh(t);
  error.record(validate(all));
  if (error) return {};
  core_program core(placed.p, all, rules.core());
  vec<mesh_set> by_op;
  const vec<op_id>& source_op = core.nested.source_op;
  for (op_id o = 0; o < core.p.op_count(); ++o)
    by_op.push_back(on[source_op.empty() ? o : source_op[o]]);
  core.set_sizes(size_finder(t, all).find(by_op));
  return core;
}

/// Errors    O134 a device of a mesh needs more memory than the topology states for it
constexpr void check_memory(pipelined& p) {
  bool limited = false;
  if (!p.checks_memory) return;
  for (int m = 0; m < p.topology.count(); ++m)
    limited = limited || (p.topology[m].has_device && p.topology[m].device.memory > 0);
  if (!limited) return;
  const vec<mesh_memory> memory = memory_of(p);
  for (int m = 0; m < p.topology.count(); ++m) {
    const device& d = p.topology[m].device;
    if (!p.topology[m].has_device || d.memory <= 0 ||
        static_cast<double>(memory[m].peak) <= d.memory)
      continue;
    text message("O134 pipeline: a device of mesh \"");
    message << p.topology.name(m) << "\" needs ";
    print_figure(message, memory[m].peak);
    message << " bytes";
    if (memory[m].call >= 0) message << " while it runs " << p.text_of(memory[m].call);
    message << ", ";
    print_figure(message, memory[m].arguments);
    message << " of them arguments; its device \"" << d.name() << "\" has ";
    print_figure(message, static_cast<std::int64_t>(d.memory));
    message
        << "; more microbatches, an order that keeps fewer of them, or more sharding needs less";
    p.error.set(message);
  }
}

/// Runs the actions of tactics on the core program. Counts the collectives of the units after each
/// action, and writes the units' functions after the last one. `given`: the program including the
/// dead code that was removed, or null.
template <class Schedule>
constexpr void shard_units(pipelined& out, const Schedule& tactics, const staged_program& staged,
                           const program* given) {
  out.core.set_advice(schedule_detail::syntax_of_schedule(tactics));
  tactic_context context(out.core);
  context.given = given;
  context.staged = &staged;
  const int last = schedule_detail::tactic_count(tactics) - 1;
  int number = 0;
  schedule_detail::for_each_tactic(tactics, [&](const auto& t) {
    if (out.error || context.error) return;
    tactic_report report = schedule_detail::run_actions(out.core, context, t.name(), [&] {
      schedule_detail::apply_before_others(t, context, tactics, number++);
    });
    if (context.error) return;
    if (!schedule_detail::rewrites(t)) schedule_detail::note_idle(out.core, report, out.tactics);
    const bool is_last = static_cast<int>(out.tactics.size()) == last;
    if (is_last || report.last_action > report.first_action) {
      unit_lowerer(out, out.core, is_last).run();
      out.collectives = count_calls(out);
    }
    report.counts = out.collectives;
    for (const auto& u : out.units)
      for (const auto& note : u.notes) report.counts_as_written.count(note.kind);
    out.tactics.push_back(static_cast<tactic_report&&>(report));
  });
  out.error.record(context.error);
  if (!out.error && last < 0) unit_lowerer(out, out.core).run();
}

}  // namespace mpmd_detail
namespace separate {
void prove_by_default(pipelined& p);
}
namespace mpmd_detail {

/// True if the header with the proof of pipelines is included. Found by argument-dependent lookup,
/// so that files that prove nothing do not compile the checker.
template <class Pipelined>
constexpr bool knows_proofs = requires(Pipelined& p) {
  prove_when_asked(p, partition_options().prove);
};

/// Proves a pipeline if the options request it. This is the default if the compiled library is used
/// without NDEBUG.
///
/// Errors    Q... the reason why it is not proved; O148 the header is missing
template <bool KnowsProofs, class Pipelined>
constexpr void prove_as_asked(Pipelined& p, const partition_options& options) {
  if (p.error || options.prove == &no_proof) return;
  if (options.prove == nullptr) {
#if defined(PARTITA_SEPARATE) && !defined(NDEBUG)
    if (!std::is_constant_evaluated()) separate::prove_by_default(p);
#endif
  } else if constexpr (KnowsProofs)
    prove_when_asked(p, options.prove);
  else
    p.error.record("O148",
                   "pipeline: prove: the proof of pipelines is missing; #include "
                   "<partita/mpmd/prove_pipeline.hpp>");
  p.error.raise();
}

/// Writes the units of a pipeline and their functions, and returns the dependences between them.
/// `split`: backward units have two parts.
template <class Order, class Schedule>
constexpr vec<call_edge> make_units(pipelined& out, const program& p, const topology& t, bool split,
                                    const Order& order, const pipeline_options& options,
                                    const Schedule& tactics, const partition_options& more,
                                    const program* with_dead_code) {
  constexpr bool sharded = !std::same_as<Schedule, boost::hana::tuple<>>;
  out.options = more;
  out.topology = t;
  out.channels = options.channels;
  out.checks_memory = options.check_memory;
  out.microbatches = static_cast<int>(options.microbatches);
  out.error.record(more.validate());
  if (out.error) return {};
  vec<schedule_detail::kept_microbatch_entry> batch;
  for (const auto& e : options.batch) batch.push_back(schedule_detail::kept_microbatch_entry(e));
  one_microbatch one = cut_into_microbatches(p, options.microbatches, batch, options.where.names,
                                             schedule_detail::syntax_of_schedule(tactics));
  out.notes = one.notes;
  out.microbatches = static_cast<int>(one.microbatches);
  out.own_loop = one.own_loop;
  if (one.error && !one.wrong_loop)  // report a wrong name first
    out.error.record(mpmd_detail::assigner(p, t, options.where).run().error);
  out.error.record(one.error);
  if (out.error) return {};
  if (sharded && options.keep_gathered) gather_keeper(one).run();
  mpmd_detail::assigned_program given = mpmd_detail::assigner(one.p, t, options.where).run();
  out.error.record(given.error);
  if (out.error) return {};
  if (out.microbatches > 1 && mpmd_detail::sum_splitter(one, given.mesh).run())
    given = mpmd_detail::assigner(one.p, t, options.where).run();
  given.inside = one.inside;
  mpmd_detail::keep_what_crosses(one.p, given);
  const auto where = mpmd_detail::inference(one.p, t, options.where, given).run();
  mpmd_detail::placed_program placed = mpmd_detail::chain_splitter(one.p, given, where).run();
  out.error.record(placed.error);
  if (out.error) return {};
  out.input_mesh = placed.input_mesh;
  out.output_mesh = placed.output_mesh;
  mpmd_detail::unit_writer writer(out, placed, split);
  writer.run();
  if (out.error) return {};
  vec<mesh_set> on;
  if constexpr (sharded) on = meshes_of_ops(placed);
  if constexpr (sharded)
    out.core = mpmd_detail::pipeline_core(placed, on, t, out.options.passes, out.error);
  else
    writer.write_functions();
  out.source = static_cast<program&&>(placed.p);
  out.inside = static_cast<vec<char>&&>(writer.inside_);
  if constexpr (sharded)
    if (!out.error)
      shard_units(out, tactics, staged_pipeline(out, on, writer.edges, order), with_dead_code);
  if (!out.error) drop_idle_units(out, writer.edges);
  if (!out.error) finish_units(out);
  return static_cast<vec<call_edge>&&>(writer.edges);
}

template <class Order, class Schedule>
constexpr pipelined pipelined_by(const program& p, const topology& t, const Order& order,
                                 const pipeline_options& options, const Schedule& tactics,
                                 const partition_options& more, const program* given = nullptr) {
  pipelined out;
  bool split = options.split;
  if constexpr (std::same_as<Order, pipeline_order>) split = split || order.splits;
  const vec<call_edge> edges = make_units(out, p, t, split, order, options, tactics, more, given);
  refuse_replication(out);
  if (!out.error) order_calls(out, edges, order);
  if (!out.error) check_memory(out);
  out.error.raise();
  return out;
}

}  // namespace mpmd_detail

/// Cuts a step into units and orders their calls. `order` is a pipeline_order, a key, a comparator
/// or a table; see sequence(). `tactics` is a schedule that shards the inside of the units over the
/// axes of all meshes, by name; without one, each mesh is a single device. `more`: passes and
/// overlap rewrite each unit separately.
///
/// A mistake is thrown as `error` at run time; in constant evaluation it is kept in
/// `pipelined::error`.
///
/// Errors    those of microbatch(), to_mpmd() and sequence(); O007 deadlock; O120 and O121 named
///           parts and the loop, O122 an op inside of the loop without a unit, O123 a stage that
///           would run twice, O124 a stage on a different mesh than the order requires; those of
///           `more`, S020 of `strict`, O148 and Q... of `prove`
template <class Order, class Schedule = boost::hana::tuple<>,
          std::same_as<pipelined> Pipelined = pipelined,
          bool KnowsProofs = mpmd_detail::knows_proofs<Pipelined>>
constexpr Pipelined pipeline(const program& p, const topology& t, const Order& order,
                             const pipeline_options& options, const Schedule& tactics = {},
                             const partition_options& more = {}) {
  program live = p, original;
  const dead_code removed = schedule_detail::remove_dead_code(live, original);
  Pipelined out = mpmd_detail::pipelined_by(live, t, order, options, tactics, more, &p);
  out.original = p;
  out.removed = removed;
  mpmd_detail::prove_as_asked<KnowsProofs>(out, more);
  return out;
}

}  // namespace partita
