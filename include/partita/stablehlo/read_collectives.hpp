/// Ops that only programs for one device have: collectives, the number of a device, and manually
/// partitioned computations (`sdy.manual_computation`, from JAX's shard_map).
///
/// Source    the StableHLO specification, version 1.0, and the definition of the SDY dialect
#pragma once

#include <partita/op/reverse_mode.hpp>
#include <partita/spmd/parse_layout.hpp>
#include <partita/stablehlo/device_position.hpp>
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
