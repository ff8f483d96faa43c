/// Writes groups of devices, the number of a device in its group, and the start of its shard.
#pragma once

#include <partita/spmd/collectives.hpp>
#include <partita/stablehlo/module_writer.hpp>
#include <partita/stablehlo/replica_groups.hpp>

namespace partita::stablehlo_detail {

constexpr axis_list axes_of(const layout& l, int dim) {
  axis_list list;
  for (const auto& e : l)
    if (dim == no_dim || e.dim == dim) list.push_back(e.axis);
  return list;
}
constexpr std::int64_t devices_along(const mesh& m, const axis_list& axes) {
  std::int64_t n = 1;
  for (const int axis : axes) n *= m.size(axis);
  return n;
}

/// Writes `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`, built once for each list of axes.
constexpr void write_groups(body_writer& w, const axis_list& axes) {
  text key = "groups";
  for (const int axis : axes) key << ' ' << axis;
  if (const text* known = w.m.find(key.view())) {
    w.out() << *known;
    return;
  }
  const auto groups = device_numbers(*w.m.mesh).groups(axes);
  text made = "replica_groups = dense<[";
  append_list(made, static_cast<int>(groups.size()), [&](int g) {
    const auto& members = groups[static_cast<std::size_t>(g)];
    write_list(made, {members.data(), members.size()});
  });
  made << "]> : tensor<" << groups.size() << 'x' << groups[0].size() << "xi64>";
  w.out() << made;
  w.m.remember(key, made);
}

// ---- Position of this device -----------------------------------------------------------------

inline constexpr tensor_type device_number{dtype::i64, {}};

/// Writes the position of this device along an axis.
constexpr ssa coordinate(body_writer& w, int axis) {
  if (w.coordinates.empty()) w.coordinates.resize(max_axes, ssa{0, -2});
  ssa& known = w.coordinates[static_cast<std::size_t>(axis)];
  if (known.index != -2) return known;
  const mesh& m = *w.m.mesh;
  const ssa id = w.begin();
  w.out() << "stablehlo.replica_id : tensor<ui32>\n";
  ssa at = w.convert(id, {dtype::u32, {}}, dtype::i64);
  const std::int64_t stride = device_numbers(m).stride[axis];
  if (stride > 1) at = w.apply("divide", at, w.constant(device_number, stride), device_number);
  at = w.apply("remainder", at, w.constant(device_number, m.size(axis)), device_number);
  known = at;
  return at;
}
/// Writes the number of this device in its group.
constexpr ssa member_number(body_writer& w, const axis_list& axes) {
  if (axes.count == 0) return w.constant(device_number, 0);
  ssa n = coordinate(w, axes.axes[0]);
  for (int i = 1; i < axes.count; ++i) {
    const ssa size = w.constant(device_number, w.m.mesh->size(axes.axes[i]));
    const ssa major = w.apply("multiply", n, size, device_number);
    n = w.apply("add", major, coordinate(w, axes.axes[i]), device_number);
  }
  return n;
}

constexpr void write_shard_start(body_writer& w, op_id o) {
  const auto a = w.p.attrs(o);
  const ssa number = member_number(w, op::shard_start::axes(a));
  const ssa distance = w.constant(device_number, op::shard_start::distance(a));
  const ssa start = w.apply("multiply", number, distance, device_number);
  w.names[static_cast<std::size_t>(w.p.op(o).result)] =
      w.convert(start, device_number, w.result_type(o).element);
}

}  // namespace partita::stablehlo_detail
