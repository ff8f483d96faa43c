/// The wires through which values pass into and out of nested programs during a run.
#pragma once

#include <cstddef>
#include <vector>

#include <partita/run/memory/coordinates.hpp>

namespace partita::run_detail {

/// A wire at run time: the source and the destinations of its value.
struct run_wire {
  int operand = -1, operand_shift = 0;
  int result = -1, result_shift = 0;
  vec<wire_end> inputs, outputs;
  tensor_type type;  ///< inside the nested programs
  axis_set axes;     ///< inside, and for the result
  int memory = -1;   ///< in workspace::carried

  constexpr bool carried() const { return operand >= 0 && !outputs.empty(); }
};

constexpr run_wire run_wire_of(const program& p, op_id o, const wire& from, axis_set axes) {
  run_wire w;
  w.axes = axes;
  for (const auto& e : from.ends) {
    if (e.kind == wire_end::operand) {
      w.operand = e.index;
      w.operand_shift = e.shift;
    } else if (e.kind == wire_end::result) {
      w.result = e.index;
      w.result_shift = e.shift;
    } else if (e.kind == wire_end::input) {
      w.inputs.push_back(e);
      w.type = p.region(o, e.region).input_type(e.index);
    } else {
      w.outputs.push_back(e);
      w.type = p.region(o, e.region).output_type(e.index);
    }
  }
  return w;
}
/// Returns the wires of an op; `operands` are the axes over which its operands vary.
inline std::vector<run_wire> run_wires(const program& p, op_id o, const mesh& m,
                                       const vec<axis_set>& operands) {
  wire_list list;
  p.op(o).def->wires(p, o, list);
  const vec<axis_set> axes = varying_wires(p, o, m, list, {operands.data(), operands.size()});
  std::vector<run_wire> wires;
  for (std::size_t i = 0; i < list.wires.size(); ++i)
    wires.push_back(run_wire_of(p, o, list.wires[i], axes[i]));
  return wires;
}
/// Returns the axes over which the inputs of a nested program vary.
inline vec<axis_set> input_axes(const std::vector<run_wire>& wires, int region, std::size_t count) {
  vec<axis_set> axes(count, axis_set{});
  for (const auto& w : wires)
    for (const auto& e : w.inputs)
      if (e.region == region) axes[static_cast<std::size_t>(e.index)] = w.axes;
  return axes;
}

}  // namespace partita::run_detail
