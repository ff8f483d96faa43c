/// Pipelines as data: a step cut into units, functions that meshes call for each microbatch.
///
/// Source    Shardy:MPMD, fragment scheduling; GPipe, arXiv:1811.06965
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/core/core_program.hpp>
#include <partita/mpmd/mpmd_program.hpp>
#include <partita/mpmd/sequence.hpp>
#include <partita/mpmd/timeline.hpp>
#include <partita/schedule/partition.hpp>
#include <partita/spmd/lowered.hpp>

namespace partita {

namespace mpmd_detail {
/// Not a constant expression, so that the compiler names it when a `static_assert` asks for what is
/// not there.
[[noreturn]] inline void no_such_mesh(std::string_view name, const topology& t) {
  throw error(concat("O125 pipeline: the topology has no mesh \"", name, "\"; ",
                     known_names(name, t.names())));
}
}  // namespace mpmd_detail

/// What a function takes or gives.
struct unit_value {
  value_id slot = -1;  ///< see pipelined::values
  layout lies;
  axis_set terms;  ///< axes along which devices hold terms that are still to be added
};

/// A function that a mesh calls: for each microbatch (`inside`), or once in front of or behind
/// them.
///
/// Inputs of its function: `piece.inputs`, then an accumulator for each of `sums`; its outputs:
/// `piece.outputs`, then a slice for each of `stacks`, then the accumulators with what this call
/// adds. Of what all calls give together the result of its op is an input of the unit behind them.
struct pipeline_unit {
  fragment piece;
  int transposed = 0;
  fragment_part part = fragment_part::whole;
  std::uint8_t joined = 0;  ///< see fragment_call
  bool inside = false;
  vec<op_id> stacks;    ///< microbatch_stack ops of which it makes the slices
  vec<op_id> sums;      ///< microbatch_sum ops of which it makes what is combined
  vec<op_id> combined;  ///< of either: it takes what all calls of another unit gave together
  vec<unit_value> takes, gives;  ///< of its function, in order
  device_program device;         ///< its function, on one device of its mesh
  collectives counts;            ///< of one call
  vec<collective_note> notes;    ///< where they come from; values and ops are those of the core
};

/// How what is sent lies on the mesh that sends it and on the one that takes it.
struct transfer_layout {
  layout from, to;
};

/// A step over the meshes of a topology, whose microbatches are calls of units.
struct pipelined {
  program original;  ///< the step as it was given
  program source;    ///< one microbatch, see one_microbatch
  partita::topology topology;
  int microbatches = 1, stages = 1;
  vec<pipeline_unit> units;  ///< in an order of execution
  vec<transfer> transfers;   ///< of a value of an iteration: for each microbatch
  vec<int> input_mesh, output_mesh;
  vec<char> inside;  ///< by op of `source`: does it run for each microbatch?
  /// The source with loops over the axes of all meshes; without ops, if nothing is sharded.
  core_program core;
  vec<tactic_report> tactics;
  partition_options options;         ///< passes and overlap, for each unit
  partita::collectives collectives;  ///< of all calls
  vec<mesh> meshes;                  ///< by mesh: its axes as layouts number them
  vec<layout> input_layout, output_layout;
  vec<transfer_layout> sent_as;  ///< by transfer
  vec<value_id> slot_of;         ///< by value of `source`: what stands for it between units
  vec<value_id> output_slot;     ///< by output
  vec<char> repeated;            ///< by slot: is it a value of an iteration?
  call_graph calls;
  vec<int> unit_of;  ///< by call
  vec<int> order;    ///< of calls
  mesh_lists lists;
  channel_options channels;
  bool checks_memory = true;  ///< see pipeline_options::check_memory
  vec<text> notes;
  bool proved = false;  ///< by the function of that name, see prove_pipeline.hpp
  failure error;

  /// The program whose values lie on meshes between calls: the core's, or the source.
  constexpr const program& values() const { return core.p.ops.empty() ? source : core.p; }

  /// `F0 F1 B0 ...`: what a mesh runs for the microbatches, in its order.
  ///
  /// Errors    O125 there is no such mesh: thrown, in constant evaluation no constant expression
  constexpr text order_of(std::string_view mesh) const {
    const int number = topology.find(mesh);
    if (number < 0) mpmd_detail::no_such_mesh(mesh, topology);
    vec<int> list;
    for (const int c : order)
      if (calls.calls[c].ordered() && calls.calls[c].mesh == number) list.push_back(c);
    return list_text(calls, list);
  }
};

}  // namespace partita
