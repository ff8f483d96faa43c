/// Reads numbers of devices, and arithmetic on them, as positions along axes of the mesh.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/stablehlo/op_context.hpp>
#include <partita/stablehlo/read_elementwise.hpp>

namespace partita::stablehlo_detail {

/// A scalar that is the number of this device along some axes, times a distance.
struct device_position {
  bool known = false;
  std::int64_t distance = 1;
  axis_list axes;

  constexpr std::int64_t count(const mesh& m) const {
    std::int64_t n = 1;
    for (const int axis : axes) n *= m.size(axis);
    return n;
  }
};
constexpr device_position position_of(const program& p, value_id v) {
  const op_id o = p.producer(v);
  if (p.op(o).def->id != def<op::shard_start>.id) return {};
  return {true, op::shard_start::distance(p.attrs(o)), op::shard_start::axes(p.attrs(o))};
}
/// True for a scalar integer constant; stores it in `out`.
constexpr bool constant_of(const program& p, value_id v, std::int64_t& out) {
  const op_id o = p.producer(v);
  if (!p.op(o).def->constant || p.op(o).def->id != def<op::constant>.id ||
      is_floating(p.type(v).element))
    return false;
  out = p.attrs(o)[0];
  return true;
}
/// True if the type can represent numbers up to n.
constexpr bool holds(dtype t, std::int64_t n) {
  const int bits = 8 * static_cast<int>(size_of(t)) - (is_unsigned(t) ? 0 : 1);
  return bits >= 63 || n < std::int64_t{1} << bits;
}
/// Returns the number of trailing axes that together have this number of devices, or -1.
constexpr int minor_axes(const mesh& m, const axis_list& axes, std::int64_t devices) {
  std::int64_t n = 1;
  for (int count = 0; count <= axes.count; ++count) {
    if (n == devices) return count;
    if (count < axes.count) n *= m.size(axes.axes[axes.count - 1 - count]);
  }
  return -1;
}
constexpr axis_list part_of(const axis_list& axes, int begin, int end) {
  axis_list list;
  for (int i = begin; i < end; ++i) list.push_back(axes.axes[i]);
  return list;
}
constexpr void give_position(op_context& c, const device_position& p, dtype element) {
  if (p.axes.count == 0)
    c.give(c.b.scalar(def<op::constant>, element, 0));
  else
    c.give(append_shard_start(c.b.p, p.distance, p.axes, element));
}
constexpr void read_device_number(op_context& c) {
  device_position all;
  all.known = true;
  for (int i = 0; i < c.local_mesh->rank; ++i) all.axes.push_back(c.local_mesh->order[i]);
  give_position(c, all, dtype::u32);
}
/// Reads a comparison of a number from 0 to `last` with n. Returns false if the result differs
/// between devices.
constexpr bool read_decided(op_context& c, std::string_view direction, std::int64_t last,
                            std::int64_t n) {
  bool always = false, never = false;
  if (direction == "LT") always = last < n, never = n <= 0;
  if (direction == "GE") always = n <= 0, never = last < n;
  if (direction == "LE") always = last <= n, never = n < 0;
  if (direction == "GT") always = n < 0, never = last <= n;
  if (always || never) c.give(c.b.scalar(def<op::constant>, dtype::boolean, always ? 1 : 0));
  return always || never;
}
/// Reads a select whose scalar flag is constant: emits the chosen operand. False for other flags.
constexpr bool read_chosen(op_context& c) {
  std::int64_t holds = 0;
  if (c.operands.size() != 3 || c.type(0).shape.rank != 0 || !constant_of(c.b.p, c.x(0), holds))
    return false;
  const value_id chosen = c.x(holds != 0 ? 1 : 2);
  const shape to = c.type(c.type(1).shape.rank > 0 ? 1 : 2).shape;
  c.give(c.type(holds != 0 ? 1 : 2).shape.rank == to.rank
             ? chosen
             : ops::broadcast_in_dim(c.b, chosen, to, {}));
  return true;
}
/// Reads arithmetic that computes coordinates from the number of a device: `id / 2 % 4`, `i * 8`.
/// False for other ops.
constexpr bool read_position(op_context& c, std::string_view name) {
  const mesh& m = *c.local_mesh;
  const auto position = [&](std::size_t i) {
    return i < c.operands.size() && c.x(i) >= 0 ? position_of(c.b.p, c.x(i)) : device_position{};
  };
  device_position at = position(0), other = position(1);
  if (name == "convert" && at.known && c.o.result_types.size() == 1 &&
      c.o.result_types[0].shape.rank == 0 && is_integer(c.o.result_types[0].element) &&
      holds(c.o.result_types[0].element, at.distance * at.count(m)))
    return give_position(c, at, c.o.result_types[0].element), true;
  if (c.operands.size() != 2 || !(at.known || other.known)) return false;
  if (c.type(0).shape.rank != 0 || c.type(1).shape.rank != 0) return false;
  const dtype element = c.type(0).element;
  if (name == "add" && at.known && other.known) {
    if (at.distance < other.distance) {
      const device_position minor = at;
      at = other;
      other = minor;
    }
    if (at.distance != other.distance * other.count(m) ||
        at.axes.count + other.axes.count > max_axes)
      return false;
    for (const int axis : other.axes) {
      for (const int each : at.axes)
        if (each == axis) return false;
      at.axes.push_back(axis);
    }
    at.distance = other.distance;
    return give_position(c, at, element), true;
  }
  std::int64_t n = 0;
  if (name == "compare" && at.known && constant_of(c.b.p, c.x(1), n) &&
      (n >= 0 || !is_unsigned(element)))  // otherwise it is 2^63 or more
    return read_decided(c, comparison_direction(c), at.distance * (at.count(m) - 1), n);
  if (name == "multiply" && other.known && constant_of(c.b.p, c.x(0), n))
    at = other;
  else if (!at.known || !constant_of(c.b.p, c.x(1), n))
    return false;
  if (n < 1) return false;
  if (name == "multiply") {
    if (!holds(element, saturating_multiply(saturating_multiply(at.distance, n), at.count(m))))
      return false;
    at.distance *= n;
    return give_position(c, at, element), true;
  }
  if (name != "divide" && name != "remainder") return false;
  const int minor = at.distance == 1 ? minor_axes(m, at.axes, n) : -1;
  if (minor < 0) return false;
  const int major = at.axes.count - minor;
  at.axes = name == "divide" ? part_of(at.axes, 0, major) : part_of(at.axes, major, at.axes.count);
  return give_position(c, at, element), true;
}

}  // namespace partita::stablehlo_detail
