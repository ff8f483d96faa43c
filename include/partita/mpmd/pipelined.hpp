/// Pipelines as data: a step cut into units, functions that meshes call for each microbatch.
///
/// Source    Shardy:MPMD, fragment scheduling; GPipe, arXiv:1811.06965
#pragma once

#include <string_view>

#include <partita/mpmd/mpmd_program.hpp>
#include <partita/mpmd/sequence.hpp>
#include <partita/mpmd/timeline.hpp>

namespace partita {

namespace mpmd_detail {
/// Not a constant expression, so that the compiler names it when a `static_assert` asks for what is
/// not there.
[[noreturn]] inline void no_such_mesh(std::string_view name, const topology& t) {
  throw error(concat("O125 pipeline: the topology has no mesh \"", name, "\"; ",
                     known_names(name, t.names())));
}
}  // namespace mpmd_detail

/// A function that a mesh calls: for each microbatch (`inside`), or once in front of or behind
/// them.
///
/// Inputs of the function: `piece.inputs`, then an accumulator for each of `sums`; its outputs:
/// `piece.outputs`, then a slice for each of `stacks`, then the accumulators with what this call
/// adds. Of what all calls give together the result of its op is an input of the unit behind them.
struct pipeline_unit {
  fragment piece;
  int transposed = 0;
  fragment_part part = fragment_part::whole;
  bool inside = false;
  vec<op_id> stacks;  ///< microbatch_stack ops of which it makes the slices
  vec<op_id> sums;    ///< microbatch_sum ops of which it makes what is combined
  program function;
};

/// A step over the meshes of a topology, whose microbatches are calls of units.
struct pipelined {
  program source;  ///< one microbatch, see one_microbatch
  partita::topology topology;
  int microbatches = 1, stages = 1;
  vec<pipeline_unit> units;  ///< in an order of execution
  vec<transfer> transfers;   ///< of a value of an iteration: for each microbatch
  vec<int> input_mesh, output_mesh;
  vec<char> inside;  ///< by op of `source`: does it run for each microbatch?
  call_graph calls;
  vec<int> unit_of;  ///< by call
  vec<int> order;    ///< of calls
  mesh_lists lists;
  channel_options channels;
  vec<text> notes;
  failure error;

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
