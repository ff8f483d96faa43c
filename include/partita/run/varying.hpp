/// Over which mesh axes a value varies: the emulator keeps one copy per distinct coordinate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <partita/ir/wires.hpp>
#include <partita/op/optimization_barrier.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::detail {

/// A set of mesh axes; axes of size 1 never belong to one.
using axis_set = std::uint32_t;

/// Coordinates on a mesh, one per axis.
struct coordinates {
  std::int64_t at[max_axes] = {};
};

constexpr bool has_axis(axis_set s, int axis) { return (s >> axis & 1u) != 0; }
constexpr axis_set one_axis(const mesh& m, std::int64_t axis) {
  return m.size(static_cast<int>(axis)) > 1 ? axis_set{1} << axis : 0;
}
constexpr axis_set axes_of(const mesh& m, const layout& l) {
  axis_set s = 0;
  for (const auto& e : l) s |= one_axis(m, e.axis);
  return s;
}
/// Number of coordinates over the axes of a set.
constexpr std::int64_t copies_over(const mesh& m, axis_set s) {
  std::int64_t n = 1;
  for (int a = 0; a < m.rank; ++a)
    if (has_axis(s, a)) n *= m.size(a);
  return n;
}
/// The copy that a device at `c` has; copies are numbered in row-major order.
constexpr std::int64_t copy_at(const mesh& m, axis_set s, const coordinates& c) {
  std::int64_t n = 0;
  for (int a = 0; a < m.rank; ++a)
    if (has_axis(s, a)) n = n * m.size(a) + c.at[a];
  return n;
}
/// Coordinates of a copy; 0 on the axes over which it does not vary.
constexpr coordinates coordinates_of(const mesh& m, axis_set s, std::int64_t copy) {
  coordinates c;
  for (int a = m.rank; a-- > 0;)
    if (has_axis(s, a)) {
      c.at[a] = copy % m.size(a);
      copy /= m.size(a);
    }
  return c;
}
/// Which axes a collective uses: (dim, axis) pairs or plain axes, after `from` other attributes.
struct collective_axes {
  layout dims;             ///< the pairs; for plain axes dim is 0
  std::int64_t count = 1;  ///< devices per group

  constexpr collective_axes(const mesh& m, const op_def* def, std::span<const std::int64_t> attrs) {
    if (def == &partita::def<op::all_reduce>) {
      for (auto a : attrs.subspan(1)) dims.push_back(static_cast<int>(a), 0);
    } else if (def == &partita::def<op::all_to_all> || def == &partita::def<op::permute>) {
      for (auto a : attrs.subspan(2)) dims.push_back(static_cast<int>(a), 0);
    } else {
      dims = op::decode_layout(attrs.subspan(def == &partita::def<op::reduce_scatter> ? 1 : 0));
    }
    for (const auto& e : dims) count *= m.size(e.axis);
  }
  /// Replaces the coordinates along the axes by those of member `i`, counted major to minor.
  constexpr void move_to(const mesh& m, std::int64_t i, coordinates& c) const {
    for (int k = dims.count; k-- > 0;) {
      const std::int64_t size = m.size(dims.entries[k].axis);
      c.at[dims.entries[k].axis] = i % size;
      i /= size;
    }
  }
  /// The piece that a device at `c` has along dimension `dim`: axes major to minor.
  constexpr std::int64_t piece(const mesh& m, int dim, const coordinates& c) const {
    return piece_of(m, dims, dim, c);
  }
  static constexpr std::int64_t piece_of(const mesh& m, const layout& l, int dim,
                                         const coordinates& c) {
    std::int64_t n = 0;
    for (const auto& e : l)
      if (e.dim == dim) n = n * m.size(e.axis) + c.at[e.axis];
    return n;
  }
};

/// Over which axes the result of a collective varies.
constexpr axis_set varies_after(const mesh& m, const op_def* def,
                                std::span<const std::int64_t> attrs, axis_set operand) {
  const axis_set used = axes_of(m, collective_axes(m, def, attrs).dims);
  const bool removes = def == &partita::def<op::all_reduce> || def == &partita::def<op::all_gather>;
  return removes ? operand & ~used : operand | used;
}

/// Over which axes the results of a program vary if its inputs vary over these. `by_value`, if
/// given, is filled for all values.
std::vector<axis_set> varying(const program& p, const mesh& m, std::span<const axis_set> inputs,
                              std::vector<axis_set>* by_value = nullptr);

/// Over which axes the wires of an op with nested programs vary, if its operands vary over these.
/// What is carried around a loop takes some rounds to settle.
inline std::vector<axis_set> varying_wires(const program& p, op_id o, const mesh& m,
                                           const wire_list& list,
                                           const std::vector<axis_set>& operands) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  std::vector<axis_set> wires(list.wires.size(), 0);
  const auto for_ends = [&](wire_end::kind_type kind, auto f) {
    for (std::size_t w = 0; w < wires.size(); ++w)
      for (const auto& e : list.wires[w].ends)
        if (e.kind == kind) f(wires[w], e);
  };
  for_ends(wire_end::operand, [&](axis_set& s, const wire_end& e) { s |= operands[at(e.index)]; });
  for (bool changed = true; changed;) {
    changed = false;
    for (int r = 0; r < p.op(o).region_count; ++r) {
      std::vector<axis_set> inputs(p.region(o, r).inputs.size(), 0);
      for_ends(wire_end::input, [&](axis_set s, const wire_end& e) {
        if (e.region == r) inputs[at(e.index)] = s;
      });
      const std::vector<axis_set> outputs = varying(p.region(o, r), m, inputs);
      for_ends(wire_end::output, [&](axis_set& s, const wire_end& e) {
        if (e.region != r || (s | outputs[at(e.index)]) == s) return;
        s |= outputs[at(e.index)];
        changed = true;
      });
    }
  }
  return wires;
}

inline std::vector<axis_set> varying(const program& p, const mesh& m,
                                     std::span<const axis_set> inputs,
                                     std::vector<axis_set>* by_value) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  std::vector<axis_set> axes(p.types.size(), 0), operands;
  for (std::size_t i = 0; i < p.inputs.size(); ++i) axes[at(p.inputs[i])] = inputs[i];
  for (op_id o = 0; o < p.op_count(); ++o) {
    const op_node& n = p.op(o);
    if (n.def->role == op_role::parameter) continue;
    operands.clear();
    for (value_id x : p.operands(o)) operands.push_back(axes[at(x)]);
    if (n.region_count > 0) {
      wire_list list;
      n.def->wires(p, o, list);
      const std::vector<axis_set> wires = varying_wires(p, o, m, list, operands);
      for (std::size_t w = 0; w < wires.size(); ++w)
        for (const auto& e : list.wires[w].ends)
          if (e.kind == wire_end::result) axes[at(n.result + e.index)] = wires[w];
      continue;
    }
    axis_set s = 0;
    for (axis_set each : operands) s |= each;
    if (n.def == &def<op::shard_start>)
      for (auto a : p.attrs(o).subspan(1)) s |= one_axis(m, a);
    for (int r = 0; r < n.result_count; ++r) {
      axis_set& result = axes[at(n.result + r)];
      result = n.def == &def<op::optimization_barrier> ? operands[at(r)] : s;
      if (n.def->collective) result = varies_after(m, n.def, p.attrs(o), operands[at(r)]);
    }
  }
  std::vector<axis_set> outputs;
  for (const auto& out : p.outputs) outputs.push_back(axes[at(out.value)]);
  if (by_value != nullptr) *by_value = std::move(axes);
  return outputs;
}

}  // namespace partita::detail
