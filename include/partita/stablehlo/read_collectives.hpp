/// Ops that only programs for one device have: collectives, the number of a device, and manually
/// partitioned computations (`sdy.manual_computation`, from JAX's shard_map).
///
/// Source    the StableHLO specification, version 1.0, and the definition of the SDY dialect
#pragma once

#include <partita/op/reverse_mode.hpp>
#include <partita/spmd/parse_layout.hpp>
#include <partita/stablehlo/exchanges.hpp>
#include <partita/stablehlo/ops.hpp>

namespace partita::stablehlo_detail {

// ---- Collectives

constexpr void read_all_reduce(op_context& c) {
  collective what = of_kind(collective::all_reduce);
  what.combine = combiner_of(c);
  const axis_list axes = axes_of_groups(c, false);
  what.axes = along(axes, no_dim);
  for (const value_id x : c.operands)
    if (!c.failed()) c.give(axes.count > 0 ? give_collective(c, what, x) : x);
}
constexpr void read_all_gather(op_context& c) {
  const int dim = c.dimension(c.needed("all_gather_dim"));
  const axis_list axes = axes_of_groups(c, true);
  for (const value_id x : c.operands) {
    if (c.failed()) return;
    if (dim >= c.b.type(x).shape.rank)
      return c.fail("H005", "all_gather_dim = ", dim, " of ", c.b.type(x));
    const collective what = of_kind(collective::all_gather, along(axes, dim));
    c.give(axes.count > 0 ? give_collective(c, what, x) : x);
  }
}
constexpr void read_reduce_scatter(op_context& c) {
  const int dim = c.dimension(c.needed("scatter_dimension"));
  collective what = of_kind(collective::reduce_scatter);
  what.combine = combiner_of(c);
  const axis_list axes = axes_of_groups(c, true);
  if (c.failed() || !c.count(1)) return;
  if (dim >= c.type(0).shape.rank)
    return c.fail("H005", "scatter_dimension = ", dim, " of ", c.type(0));
  what.axes = along(axes, dim);
  c.give(axes.count > 0 ? give_collective(c, what, c.x(0)) : c.x(0));
}
constexpr void read_all_to_all(op_context& c) {
  const int split = c.dimension(c.needed("split_dimension"));
  const int joined = c.dimension(c.needed("concat_dimension"));
  const axis_list axes = axes_of_groups(c, true);
  for (const value_id x : c.operands) {
    if (c.failed()) return;
    c.give(exchanged(c, x, axes, split, joined));
  }
}
constexpr void read_permute(op_context& c) {
  const mesh& m = *c.local_mesh;
  vec<std::int64_t> pairs;
  bool splat = false;
  const std::string_view value = c.o.attribute("source_target_pairs");
  if (!read_integers(value, pairs, splat) || pairs.size() % 2 != 0)
    return c.fail("H005", "attribute source_target_pairs = ", value.substr(0, 60),
                  " is not a list of pairs");
  vec<char> gets(static_cast<std::size_t>(m.devices()), 0);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i] < 0 || pairs[i] >= m.devices())
      return c.fail("H005", "source_target_pairs name device ", pairs[i], "; the mesh ", m, " has ",
                    m.devices());
    if (i % 2 == 1 && ++gets[static_cast<std::size_t>(pairs[i])] > 1)
      return c.fail("H005", "two devices send to device ", pairs[i]);
  }
  if (!c.count(1)) return;
  collective what;
  c.give(device_numbers(m).map_of(pairs, what) ? give_collective(c, what, c.x(0))
                                               : permuted(c, c.x(0), pairs));
}

// ---- The number of this device

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

// ---- Manual computations

/// Returns the layout of `<@mesh, [{"B", ?}, {}p0], replicated={"M"}>`, restricted to `manual`
/// axes.
constexpr layout read_sharding(op_context& c, std::string_view sharding, const shape& whole,
                               axis_set manual) {
  layout made;
  if (sharding.find("mesh<") != std::string_view::npos) {
    c.fail("H013", "sharding ", sharding.substr(0, 80), " contains a mesh; refer to @mesh");
    return made;
  }
  const std::size_t end = sharding.find(']');
  text plain = "[";
  bool first = true;
  for (std::string_view dim : parts_of(inside(sharding.substr(0, end + 1), '[', ']'))) {
    plain << (first ? "{" : ", {");
    first = false;
    bool any = false;
    for (std::string_view axis : parts_of(inside(dim, '{', '}'))) {
      if (axis == "?") continue;
      plain << (any ? ", " : "") << axis;
      any = true;
    }
    plain << '}';
  }
  plain << ']';
  failure f;
  const layout l = parse_layout(plain, *c.local_mesh, whole, f);
  if (f) {
    c.fail(f.message.view().substr(0, 4), f.message.view().substr(5));
    return made;
  }
  for (const auto& e : l)
    if (manual.contains(e.axis)) made.push_back(e.axis, e.dim);
  return made;
}
constexpr vec<std::string_view> shardings_of(op_context& c, std::string_view name,
                                             std::size_t count) {
  const vec<std::string_view> list = parts_of(inside(c.o.attribute(name), '[', ']'));
  if (list.size() != count)
    c.fail("H012", name, " has ", list.size(), " shardings for ", count, " values");
  return list;
}
/// Reads a manual computation. Values outside are replicated on each device; operands are sliced
/// and results gathered.
constexpr void read_manual_computation(op_context& c) {
  if (!c.region_count(1)) return;
  program& body = c.regions[0];
  axis_set manual;
  for (std::string_view each : parts_of(inside(c.o.attribute("manual_axes"), '{', '}'))) {
    const int axis = c.local_mesh->find(without_quotes(each));
    if (axis < 0)
      return c.fail("H006", "manual_axes: the mesh ", *c.local_mesh, " has no axis ", each);
    for (const int part : c.local_mesh->parts_of(c.local_mesh->whole_axis(axis)))
      manual.insert(part);
  }
  const std::size_t operands = c.operands.size(), results = c.o.result_types.size();
  const auto in = shardings_of(c, "in_shardings", operands);
  const auto out = shardings_of(c, "out_shardings", results);
  if (c.failed()) return;
  if (static_cast<std::size_t>(body.output_count()) != results)
    return c.fail("H012", "its program returns ", body.output_count(), " values; its type states ",
                  results);
  vec<value_id> pieces;
  for (std::size_t i = 0; i < operands; ++i) {
    const collective what =
        of_kind(collective::all_slice, read_sharding(c, in[i], c.type(i).shape, manual));
    if (c.failed()) return;
    pieces.push_back(what.axes.count > 0 ? give_collective(c, what, c.x(i)) : c.x(i));
    const tensor_type wanted = body.input_type(static_cast<int>(i));
    if (!c.failed() && c.b.type(pieces.back()) != wanted)
      return c.fail("H007", "a shard of operand ", i, " is ", c.b.type(pieces.back()),
                    "; its program states ", wanted);
  }
  pieces.insert_back(c.captured.begin(), c.captured.end());
  const vec<value_id> made =
      op_detail::append_with_marks(c.b, static_cast<program&&>(body), pieces);
  for (std::size_t i = 0; i < results && !c.failed(); ++i) {
    const collective what = of_kind(collective::all_gather,
                                    read_sharding(c, out[i], c.o.result_types[i].shape, manual));
    if (c.failed()) return;
    c.give(what.axes.count > 0 ? give_collective(c, what, made[i]) : made[i]);
  }
}
inline constexpr read_op local_ops[] = {
    {"all_gather", &read_all_gather},         {"all_reduce", &read_all_reduce},
    {"all_to_all", &read_all_to_all},         {"collective_broadcast", &read_collective_broadcast},
    {"collective_permute", &read_permute},    {"manual_computation", &read_manual_computation},
    {"partition_id", &read_device_number},    {"ragged_all_to_all", &read_ragged_all_to_all},
    {"reduce_scatter", &read_reduce_scatter}, {"replica_id", &read_device_number},
};

/// Reads an op that only programs for devices have; false for other ops.
constexpr bool make_local_op(op_context& c, std::string_view name) {
  if (c.local_mesh != nullptr && read_position(c, name)) return true;
  if (c.local_mesh != nullptr && name == "select" && read_chosen(c)) return true;
  if (name == "custom_call" && target_of(c) == "ragged_all_to_all") name = "ragged_all_to_all";
  for (const auto& each : local_ops) {
    if (each.name != name) continue;
    if (c.local_mesh == nullptr)
      c.fail("H013",
             "it occurs only in partitioned programs; such a program can be compared with its "
             "source (prove), but not partitioned again");
    else
      each.read(c);
    return true;
  }
  return false;
}

}  // namespace partita::stablehlo_detail
