/// Over which mesh axes a value varies: the emulator keeps one copy per distinct coordinate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <partita/ir/wires.hpp>
#include <partita/op/optimization_barrier.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::run_detail {

/// Coordinates on a mesh, one per axis.
struct coordinates {
  std::int64_t at[max_axes] = {};
};

/// A set of axes; axes of size 1 never belong to one.
constexpr axis_set one_axis(const mesh& m, int axis) {
  return m.size(axis) > 1 ? axis_set::of(axis) : axis_set{};
}
constexpr axis_set axes_of(const mesh& m, const layout& l) {
  axis_set s;
  for (const auto& e : l) s |= one_axis(m, e.axis);
  return s;
}
/// Number of coordinates over the axes of a set.
constexpr std::int64_t copies_over(const mesh& m, axis_set s) {
  std::int64_t n = 1;
  for (int a = 0; a < m.rank; ++a)
    if (s.contains(a)) n *= m.size(a);
  return n;
}
/// The copy that a device at `c` has; copies are numbered in row-major order.
constexpr std::int64_t copy_at(const mesh& m, axis_set s, const coordinates& c) {
  std::int64_t n = 0;
  for (int a = 0; a < m.rank; ++a)
    if (s.contains(a)) n = n * m.size(a) + c.at[a];
  return n;
}
/// Coordinates of a copy; 0 on the axes over which it does not vary.
constexpr coordinates coordinates_of(const mesh& m, axis_set s, std::int64_t copy) {
  coordinates c;
  for (int a = m.rank; a-- > 0;)
    if (s.contains(a)) {
      c.at[a] = copy % m.size(a);
      copy /= m.size(a);
    }
  return c;
}
/// The piece that a device at `c` has along a dimension.
constexpr std::int64_t piece_of(const mesh& m, const layout& l, int dim, const coordinates& c) {
  std::int64_t n = 0;
  for (const auto& e : l)
    if (e.dim == dim) n = n * m.size(e.axis) + c.at[e.axis];
  return n;
}
/// A place in a tensor.
struct position {
  std::int64_t at[max_rank] = {};
};
/// Where the piece of a device at `c` stands in the whole.
constexpr position start_of(const mesh& m, const layout& l, const shape& piece,
                            const coordinates& c) {
  position p;
  for (int d = 0; d < piece.rank; ++d) p.at[d] = piece_of(m, l, d, c) * piece[d];
  return p;
}
/// Which member of its group a device at `c` is; axes major to minor.
constexpr std::int64_t member_of(const mesh& m, const layout& axes, const coordinates& c) {
  std::int64_t n = 0;
  for (const auto& e : axes) n = n * m.size(e.axis) + c.at[e.axis];
  return n;
}
/// The device of the same group that is member `i`.
constexpr coordinates member_at(const mesh& m, const layout& axes, std::int64_t i, coordinates c) {
  for (int k = axes.count; k-- > 0;) {
    const std::int64_t size = m.size(axes[k].axis);
    c.at[axes[k].axis] = i % size;
    i /= size;
  }
  return c;
}

/// Over which axes the result of a collective varies.
constexpr axis_set varies_after(const mesh& m, const collective& what, axis_set operand) {
  const axis_set used = axes_of(m, what.axes);
  const bool removes = what.kind == collective::all_reduce || what.kind == collective::all_gather;
  return removes ? operand - used : operand | used;
}

/// Over which axes the values of a program vary if its inputs vary over these; by value.
std::vector<axis_set> varying_values(const program& p, const mesh& m,
                                     std::span<const axis_set> inputs);

/// The same of its outputs.
inline std::vector<axis_set> varying_outputs(const program& p, const mesh& m,
                                             std::span<const axis_set> inputs) {
  const std::vector<axis_set> axes = varying_values(p, m, inputs);
  std::vector<axis_set> outputs;
  for (const auto& out : p.outputs) outputs.push_back(axes[static_cast<std::size_t>(out.value)]);
  return outputs;
}

/// Over which axes the wires of an op with nested programs vary, if its operands vary over these.
/// What is carried around a loop takes some rounds to settle.
inline std::vector<axis_set> varying_wires(const program& p, op_id o, const mesh& m,
                                           const wire_list& list,
                                           const std::vector<axis_set>& operands) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  std::vector<axis_set> wires(list.wires.size());
  const auto for_ends = [&](wire_end::kind_type kind, auto f) {
    for (std::size_t w = 0; w < wires.size(); ++w)
      for (const auto& e : list.wires[w].ends)
        if (e.kind == kind) f(wires[w], e);
  };
  for_ends(wire_end::operand, [&](axis_set& s, const wire_end& e) { s |= operands[at(e.index)]; });
  for (bool changed = true; changed;) {
    changed = false;
    for (int r = 0; r < p.op(o).region_count; ++r) {
      std::vector<axis_set> inputs(p.region(o, r).inputs.size());
      for_ends(wire_end::input, [&](axis_set s, const wire_end& e) {
        if (e.region == r) inputs[at(e.index)] = s;
      });
      const std::vector<axis_set> outputs = varying_outputs(p.region(o, r), m, inputs);
      for_ends(wire_end::output, [&](axis_set& s, const wire_end& e) {
        if (e.region != r || (s | outputs[at(e.index)]) == s) return;
        s |= outputs[at(e.index)];
        changed = true;
      });
    }
  }
  return wires;
}

/// Over which axes the results of an op without nested programs vary: f(result, axes).
template <class F>
void for_varying_results(const program& p, op_id o, const mesh& m,
                         const std::vector<axis_set>& operands, F f) {
  const op_node& n = p.op(o);
  axis_set all;
  for (axis_set each : operands) all |= each;
  if (n.def == &def<op::shard_start>)
    for (int a : op::shard_start::axes(p.attrs(o))) all |= one_axis(m, a);
  for (int r = 0; r < n.result_count; ++r) {
    const auto i = static_cast<std::size_t>(r);
    if (n.def->collective)
      f(r, varies_after(m, p.collective_of(o), operands[i]));
    else
      f(r, n.def == &def<op::optimization_barrier> ? operands[i] : all);
  }
}

inline std::vector<axis_set> varying_values(const program& p, const mesh& m,
                                            std::span<const axis_set> inputs) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  std::vector<axis_set> axes(p.types.size()), operands;
  for (std::size_t i = 0; i < p.inputs.size(); ++i) axes[at(p.inputs[i])] = inputs[i];
  for (op_id o = 0; o < p.op_count(); ++o) {
    const op_node& n = p.op(o);
    if (n.def->role == op_role::parameter) continue;
    operands.clear();
    for (value_id x : p.operands(o)) operands.push_back(axes[at(x)]);
    const auto vary = [&](int result, axis_set s) { axes[at(n.result + result)] = s; };
    if (n.region_count == 0) {
      for_varying_results(p, o, m, operands, vary);
      continue;
    }
    wire_list list;
    n.def->wires(p, o, list);
    const std::vector<axis_set> wires = varying_wires(p, o, m, list, operands);
    for (std::size_t w = 0; w < wires.size(); ++w)
      for (const auto& e : list.wires[w].ends)
        if (e.kind == wire_end::result) vary(e.index, wires[w]);
  }
  return axes;
}

}  // namespace partita::run_detail
