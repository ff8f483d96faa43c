/// Pipelines as data: a step cut into units, which meshes call for each microbatch.
///
/// Source    Shardy:MPMD, fragment scheduling; GPipe, arXiv:1811.06965
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/core/core_program.hpp>
#include <partita/mpmd/mpmd_program.hpp>
#include <partita/mpmd/sequence.hpp>
#include <partita/mpmd/states.hpp>
#include <partita/mpmd/timeline.hpp>
#include <partita/schedule/partition.hpp>
#include <partita/spmd/lowered.hpp>

namespace partita {

namespace mpmd_detail {
/// Not a constant expression, so that the compiler shows the name if a `static_assert` asks for a
/// mesh that does not exist.
[[noreturn]] inline void no_such_mesh(std::string_view name, const topology& t) {
  throw error(concat("O125 pipeline: the topology has no mesh \"", name, "\"; ",
                     known_names(name, t.names())));
}
}  // namespace mpmd_detail

/// An operand or result of a unit's function.
struct unit_value {
  value_id slot = -1;  ///< see pipelined::values
  layout lies;
  axis_set terms;  ///< axes along which devices hold terms of a pending sum
};

/// A function that a mesh calls for each microbatch (`inside`), or once before or after them.
///
/// Inputs of its function: `piece.inputs`, then an accumulator for each of `sums`. Outputs:
/// `piece.outputs`, then a slice for each of `stacks`, then the accumulators with the contribution
/// of this call. The combined result of all calls is an input of a unit after them.
struct pipeline_unit {
  fragment piece;
  int transposed = 0;
  fragment_part part = fragment_part::whole;
  std::uint8_t joined = 0;  ///< see fragment_call
  bool inside = false;
  vec<op_id> stacks;    ///< microbatch_stack ops whose slices it computes
  vec<op_id> sums;      ///< microbatch_sum ops whose summands it computes
  vec<op_id> combined;  ///< those ops, if it uses the combined result of all calls of another unit
  vec<unit_value> takes, gives;  ///< of its function, in order
  device_program device;         ///< its function, on one device of its mesh
  collectives counts;            ///< of one call
  vec<collective_note> notes;    ///< their origins; values and ops are those of the core
};

/// A part of a joint call: a unit, for a microbatch.
struct joint_part {
  int unit = -1;
  int ahead = 0;  ///< microbatches after the first one of the call
  friend constexpr bool operator==(const joint_part&, const joint_part&) = default;
};
/// A function that runs the functions of several calls of a mesh in sequence.
struct joint_function {
  vec<joint_part> parts;  ///< in the order in which they run
  vec<char> given;  ///< by result of parts (except slices and sums): true if it is used elsewhere
  /// Its function, operands and results, as of other units, with an entry in `stacks` for each
  /// slice that it computes.
  pipeline_unit whole;
  vec<int> takes_ahead, gives_ahead;  ///< microbatches after the first one; 0: none
};
/// A merged call: adjacent calls with one function.
struct joint_call {
  int function = -1;  ///< see pipelined::joint_functions
  vec<int> calls;     ///< in the order in which they run
  int first = 0;      ///< the minimum of their microbatches
};

/// The layout of a sent value on the sending and on the receiving mesh.
struct transfer_layout {
  layout from, to;
};

/// The place of a value: a slot, and its microbatch (-1: none).
struct slot_place {
  value_id slot = -1;
  int microbatch = -1;
  friend constexpr bool operator==(const slot_place&, const slot_place&) = default;
};

/// A step over the meshes of a topology, whose microbatches are calls of units.
struct pipelined {
  program original;  ///< the original step, dead code included
  dead_code removed;
  program source;  ///< one microbatch, see one_microbatch
  partita::topology topology;
  op_id own_loop = -1;  ///< the user's own loop over microbatches in `original`, or -1
  int microbatches = 1, stages = 1;
  vec<pipeline_unit> units;  ///< in an order of execution
  vec<transfer> transfers;   ///< for each microbatch, if the value belongs to an iteration
  vec<int> input_mesh, output_mesh;
  vec<char> inside;  ///< by op of `source`: true if it runs for each microbatch
  /// The source with loops over the axes of all meshes. It has no ops if nothing is sharded.
  core_program core;
  vec<tactic_report> tactics;
  partition_options options;         ///< passes and overlap, for each unit
  partita::collectives collectives;  ///< of all calls
  vec<mesh> meshes;                  ///< by mesh: its axes as numbered in layouts
  vec<layout> input_layout, output_layout;
  vec<transfer_layout> sent_as;  ///< by transfer
  vec<value_id> slot_of;      ///< by value of `source`: the value that represents it between units
  vec<value_id> output_slot;  ///< by output
  vec<char> repeated;         ///< by slot: true if it is a value of an iteration
  /// By slot: for a state, the slot of the value that an iteration leaves for it, else -1. Empty if
  /// the program has no states.
  vec<value_id> next_slot;
  call_graph calls;
  vec<int> unit_of;  ///< by call
  vec<int> order;    ///< of calls
  vec<joint_function> joint_functions;
  vec<joint_call> joint_calls;
  vec<int> joint_of;  ///< by call: its joint call, or -1; empty: no joint calls
  mesh_lists lists;
  channel_options channels;
  bool checks_memory = true;  ///< see pipeline_options::check_memory
  vec<text> notes;
  bool proved = false;  ///< set by `proved`, see prove_pipeline.hpp
  failure error;

  /// The program whose values meshes hold between calls: the core's, or the source.
  constexpr const program& values() const { return core.p.ops.empty() ? source : core.p; }

  /// The place of a value that a call for a microbatch (-1: none) uses: a slice in its stack, a
  /// state that the microbatch before left, or, after the loop, the value of the last iteration.
  /// Not for a microbatch_index, which is not stored.
  constexpr slot_place place_of(value_id slot, int microbatch) const {
    const program& p = values();
    const op_id o = p.producer(slot);
    if (p.op(o).def->id == def<op::microbatch_slice>.id) return {p.operand(o, 0), -1};
    if (const value_id next = next_of(slot); next >= 0)
      return microbatch > 0 ? slot_place{next, microbatch - 1} : slot_place{p.operand(o, 0), -1};
    return {slot, microbatch_in(slot, microbatch)};
  }
  /// The microbatch of a slot's value for a call (-1: none): the last one's value is used directly.
  constexpr int microbatch_in(value_id slot, int microbatch) const {
    if (repeated[slot] == 0) return -1;
    return microbatch < 0 ? microbatches - 1 : microbatch;
  }
  constexpr value_id next_of(value_id slot) const {
    return next_slot.empty() ? -1 : next_slot[slot];
  }
  /// The joint call that contains a call, or -1.
  constexpr int joint(int call) const { return joint_of.empty() ? -1 : joint_of[call]; }
  /// True if a call runs as part of a joint call that started with an earlier call.
  constexpr bool follows(int call) const {
    return joint(call) >= 0 && joint_calls[joint(call)].calls[0] != call;
  }
  /// The function with a number: functions of units come first, then those of joint calls.
  constexpr const pipeline_unit& function(int number) const {
    const int own = static_cast<int>(units.size());
    return number < own ? units[number] : joint_functions[number - own].whole;
  }
  /// The function number of a call, or of the joint call that contains it.
  constexpr int function_of(int call) const {
    if (joint(call) < 0) return unit_of[call];
    return static_cast<int>(units.size()) + joint_calls[joint(call)].function;
  }
  /// The text of a call: `F3`, or `F2+F3` for a joint call.
  constexpr text text_of(int call) const {
    if (joint(call) < 0) return call_text(calls.calls[call], calls.with_stage);
    text out;
    for (const int part : joint_calls[joint(call)].calls)
      out << (out.empty() ? "" : "+") << call_text(calls.calls[part], calls.with_stage);
    return out;
  }
  /// The microbatch of an operand or result of a call's function; see joint_function.
  constexpr int microbatch_of(int call, vec<int> joint_function::*ahead, std::size_t k) const {
    const int i = calls.calls[call].microbatch, j = joint(call);
    if (j < 0) return i;
    return joint_calls[j].first + (joint_functions[joint_calls[j].function].*ahead)[k];
  }
  constexpr int microbatch_taken(int call, std::size_t k) const {
    return microbatch_of(call, &joint_function::takes_ahead, k);
  }
  constexpr int microbatch_given(int call, std::size_t k) const {
    return microbatch_of(call, &joint_function::gives_ahead, k);
  }
  /// The calls of a mesh for the microbatches, in order: `F0 F1 B0 ...`. `F0+F1` is one call.
  ///
  /// Errors    O125 no mesh has this name: thrown; not a constant expression in constant evaluation
  constexpr text order_of(std::string_view mesh) const {
    const int number = topology.find(mesh);
    if (number < 0) mpmd_detail::no_such_mesh(mesh, topology);
    text out;
    for (const int c : order)
      if (calls.calls[c].ordered() && calls.calls[c].mesh == number)
        out << (out.empty()  ? ""
                : follows(c) ? "+"
                             : " ")
            << call_text(calls.calls[c], calls.with_stage);
    return out;
  }
};

}  // namespace partita
