/// The mesh axes over which the values of a device-local program vary.
#pragma once

#include <partita/ir/wires.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The set of one axis, or an empty set if the axis has size 1.
constexpr axis_set one_axis(const mesh& m, int axis) {
  return m.size(axis) > 1 ? axis_set::of(axis) : axis_set{};
}
constexpr axis_set axes_of(const mesh& m, const layout& l) {
  axis_set s;
  for (const auto& e : l) s |= one_axis(m, e.axis);
  return s;
}
namespace spmd_detail {
/// The axes over which the result of a renumbered permute varies because `operand` varies: axes
/// that number the receivers where axes of the operand number the senders.
constexpr axis_set varies_renumbered(const mesh& m, const collective& what, axis_set operand) {
  axis_set varies;
  std::int64_t to_end = 1;
  for (int k = what.axes.count; k-- > 0;) {
    const std::int64_t to_begin = to_end;
    to_end *= m.size(what.axes[k].axis);
    std::int64_t end = 1;
    for (int j = what.from.count; j-- > 0;) {
      const std::int64_t begin = end;
      end *= m.size(what.from[j].axis);
      if (operand.contains(what.from[j].axis) && begin < to_end && to_begin < end)
        varies |= one_axis(m, what.axes[k].axis);
    }
  }
  return varies;
}
}  // namespace spmd_detail

/// The axes over which the result of a collective varies.
constexpr axis_set varies_after(const mesh& m, const collective& what, axis_set operand) {
  const axis_set used = axes_of(m, what.axes);
  if (what.kind == collective::permute && what.map.form == device_map::renumbered)
    return (operand - used) | spmd_detail::varies_renumbered(m, what, operand);
  const bool removes = what.kind == collective::all_reduce || what.kind == collective::all_gather;
  return removes ? operand - used : operand | used;
}

namespace spmd_detail {

/// Calls f(result, axes) with the axes over which each result of an op without nested programs
/// varies.
template <class F>
constexpr void for_varying_results(const program& p, op_id o, const mesh& m,
                                   span<const axis_set> operands, const F& f) {
  const op_node& n = p.op(o);
  axis_set all;
  for (axis_set each : operands) all |= each;
  if (n.def->id == def<op::shard_start>.id)
    for (int a : op::shard_start::axes(p.attrs(o))) all |= one_axis(m, a);
  for (int r = 0; r < n.result_count; ++r) {
    const auto i = static_cast<std::size_t>(r);
    if (n.def->collective)
      f(r, varies_after(m, p.collective_of(o), operands[i]));
    else
      f(r, n.def->passes_on ? operands[i] : all);
  }
}

}  // namespace spmd_detail

/// The axes over which the inputs of a nested program vary, given those of the op's wires.
constexpr vec<axis_set> varying_inputs(const program& p, op_id o, int region, const wire_list& list,
                                       span<const axis_set> wires) {
  vec<axis_set> inputs(p.region(o, region).inputs.size(), axis_set());
  for (std::size_t w = 0; w < wires.size(); ++w)
    for (const auto& e : list.wires[w].ends)
      if (e.kind == wire_end::input && e.region == region) inputs[e.index] = wires[w];
  return inputs;
}

/// The axes over which the values of a program and its nested programs vary.
struct varying_sets {
  vec<axis_set> values;      ///< by value
  vec<varying_sets> nested;  ///< indexed like program::regions
};

/// Computes the sets from those of the inputs. `sets` is empty, or the result for inputs that vary
/// over fewer axes.
///
/// Values carried around a loop take several rounds to converge; a nested program is visited again
/// only if its inputs vary over more axes than before.
///
/// Cost      linear in ops and operands, including those of nested programs, times the rounds
constexpr void find_varying(const program& p, const mesh& m, span<const axis_set> inputs,
                            varying_sets& sets);

namespace spmd_detail {

/// The axes over which the wires of an op vary. `nested` has the sets of its nested programs.
constexpr vec<axis_set> settled_wires(const program& p, op_id o, const mesh& m,
                                      const wire_list& list, span<const axis_set> operands,
                                      varying_sets* nested) {
  vec<axis_set> wires(list.wires.size(), axis_set());
  const auto count = p.op(o).region_count;
  const auto leave = [&](int r) {  // returns true if a wire now varies over more axes
    if (nested[r].values.empty()) return false;
    const program& inside = p.region(o, r);
    bool more = false;
    for (std::size_t w = 0; w < wires.size(); ++w)
      for (const auto& e : list.wires[w].ends) {
        if (e.kind != wire_end::output || e.region != r) continue;
        const axis_set both = wires[w] | nested[r].values[inside.outputs[e.index].value];
        more = more || !(both == wires[w]);
        wires[w] = both;
      }
    return more;
  };
  for (std::size_t w = 0; w < wires.size(); ++w)
    for (const auto& e : list.wires[w].ends)
      if (e.kind == wire_end::operand) wires[w] |= operands[static_cast<std::size_t>(e.index)];
  for (int r = 0; r < count; ++r) leave(r);
  for (bool changed = true; changed;) {
    changed = false;
    for (int r = 0; r < count; ++r) {
      const vec<axis_set> inputs = varying_inputs(p, o, r, list, {wires.data(), wires.size()});
      find_varying(p.region(o, r), m, {inputs.data(), inputs.size()}, nested[r]);
      changed = leave(r) || changed;
    }
  }
  return wires;
}

}  // namespace spmd_detail

constexpr void find_varying(const program& p, const mesh& m, span<const axis_set> inputs,
                            varying_sets& sets) {
  vec<axis_set>& axes = sets.values;
  bool same = !axes.empty();
  axes.resize(p.types.size(), axis_set());
  sets.nested.resize(p.regions.size());
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    same = same && axes[p.inputs[i]] == inputs[i];
    axes[p.inputs[i]] = inputs[i];
  }
  if (same) return;
  vec<axis_set> operands;
  for (op_id o = 0; o < p.op_count(); ++o) {
    const op_node& n = p.op(o);
    if (n.def->role == op_role::parameter) continue;
    operands.clear();
    for (value_id x : p.operands(o)) operands.push_back(axes[x]);
    const span<const axis_set> given{operands.data(), operands.size()};
    const auto vary = [&](int result, axis_set s) { axes[n.result + result] = s; };
    if (n.region_count == 0) {
      spmd_detail::for_varying_results(p, o, m, given, vary);
      continue;
    }
    wire_list list;
    n.def->wires(p, o, list);
    const vec<axis_set> wires =
        spmd_detail::settled_wires(p, o, m, list, given, sets.nested.data() + n.region_begin);
    for (std::size_t w = 0; w < wires.size(); ++w)
      for (const auto& e : list.wires[w].ends)
        if (e.kind == wire_end::result) vary(e.index, wires[w]);
  }
}

/// The axes over which each value of a program varies, given those of the inputs.
constexpr vec<axis_set> varying_values(const program& p, const mesh& m,
                                       span<const axis_set> inputs) {
  varying_sets sets;
  find_varying(p, m, inputs, sets);
  return static_cast<vec<axis_set>&&>(sets.values);
}
/// The axes over which the wires of an op with nested programs vary, given those of its operands.
constexpr vec<axis_set> varying_wires(const program& p, op_id o, const mesh& m,
                                      const wire_list& list, span<const axis_set> operands) {
  vec<varying_sets> nested;
  nested.resize(static_cast<std::size_t>(p.op(o).region_count));
  return spmd_detail::settled_wires(p, o, m, list, operands, nested.data());
}

}  // namespace partita
