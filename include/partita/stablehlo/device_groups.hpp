/// Groups of devices named by a StableHLO collective.
///
/// Source    the StableHLO specification, version 1.0
#pragma once

#include <partita/spmd/collectives.hpp>
#include <partita/stablehlo/op_context.hpp>
#include <partita/stablehlo/reducer.hpp>
#include <partita/stablehlo/replica_groups.hpp>

namespace partita::stablehlo_detail {

// ---- Groups of devices

/// Maximum number of devices of a mesh whose groups are read, since each device is listed.
inline constexpr std::int64_t most_devices = std::int64_t{1} << 20;

/// Reads the rows of `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`.
constexpr bool read_rows(std::string_view value, vec<vec<std::int64_t>>& rows) {
  const std::size_t at = value.find("dense<");
  if (at == std::string_view::npos) return false;
  value = value.substr(at);
  bool splat = false;
  if (value.starts_with("dense<[["))
    for (std::string_view row : parts_of(inside(value.substr(0, value.find('>')), '[', ']'))) {
      rows.push_back({});
      if (!read_integers(row, rows.back(), splat)) return false;
    }
  else {  // one device
    rows.push_back({});
    if (!read_integers(value, rows.back(), splat)) return false;
  }
  return !rows.empty();
}
constexpr bool are_devices(const vec<std::int64_t>& numbers, const mesh& m) {
  for (const std::int64_t device : numbers)
    if (device < 0 || device >= m.devices()) return false;
  return true;
}
constexpr void split_as_groups_say(std::string_view value, mesh& m) {
  vec<vec<std::int64_t>> groups;
  if (!read_rows(value, groups)) return;
  for (const auto& each : groups)
    if (!are_devices(each, m)) return;
  mesh_splitter(m).add_groups(groups);
}
constexpr void split_as_pairs_say(std::string_view value, mesh& m) {
  vec<std::int64_t> pairs;
  bool splat = false;
  if (read_integers(value, pairs, splat) && pairs.size() % 2 == 0 && are_devices(pairs, m))
    mesh_splitter(m).add_pairs(pairs);
}
/// Splits the axes of a mesh so that the groups of devices in a module are products of axes.
///
/// Cost      linear in the text
constexpr void split_as_groups_need(std::string_view module, mesh& m) {
  constexpr std::string_view names[] = {"replica_groups", "source_target_pairs"};
  std::size_t next[] = {module.find(names[0]), module.find(names[1])};
  std::string_view last[2];  // previous values, of groups and of pairs: each is read once
  while (m.rank < max_axes) {
    const bool pairs = next[1] < next[0];
    std::size_t at = next[pairs];
    if (at == std::string_view::npos) return;
    at += names[pairs].size();
    if (const std::size_t dense = module.substr(at, 16).find("dense<");
        dense != std::string_view::npos) {
      const std::size_t begin = at + dense, end = module.find('>', begin);
      if (end == std::string_view::npos) return;
      const std::string_view value = module.substr(begin, end + 1 - begin);
      if (value != last[pairs])
        pairs ? split_as_pairs_say(value, m) : split_as_groups_say(value, m);
      last[pairs] = value;
      at = end;
    }
    next[pairs] = module.find(names[pairs], at);
  }
}
/// Returns the axes of the groups that the op names; the text must list all groups.
constexpr axis_list axes_of_groups(op_context& c, bool ordered) {
  const mesh& m = *c.local_mesh;
  axis_list axes;
  vec<vec<std::int64_t>> groups;
  // (A custom call has them in its configuration.)
  std::string_view value = c.o.attribute("replica_groups");
  for (const std::string_view part : parts_of(inside(c.o.attribute("backend_config"), '{', '}')))
    if (part.starts_with("replica_groups")) value = part;
  if (!read_rows(value, groups))
    c.fail("H005", "attribute replica_groups = ", value.substr(0, 60), " is not a list of groups");
  else if (!device_numbers(m).axes_of(groups, ordered, axes))
    c.fail("H013", "replica_groups = ", value.substr(0, 80),
           " are not groups along axes of the mesh ", m, ", or parts of them",
           ordered ? ", with their members in the order of their positions" : "");
  return axes;
}
constexpr collective of_kind(collective::kind_type kind, const layout& axes = {}) {
  collective what;
  what.kind = kind;
  what.axes = axes;
  return what;
}
constexpr layout along(const axis_list& axes, int dim) {
  layout l;
  for (const int axis : axes) l.push_back(axis, dim);
  return l;
}
/// Emits a collective of `x`, whose result type follows from the mesh.
///
/// Errors    S104 its combiner does not accept such elements
constexpr value_id give_collective(op_context& c, const collective& what, value_id x) {
  if (what.reduces())
    c.b.p.error.record(op::check_combined(name_of(what.kind), what.combine, c.b.type(x).element));
  if (c.failed()) return -1;
  const tensor_type t{c.b.type(x).element, what.after(c.b.type(x).shape, *c.local_mesh)};
  for (const std::int64_t extent : t.shape)
    if (extent < 0) {
      c.fail("H007", c.b.type(x), " is divided among ", what.members(*c.local_mesh),
             " devices, which do not divide it");
      return -1;
    }
  return append(c.b.p, what, x, t);
}
constexpr combiner combiner_of(op_context& c) {
  combiner how = combiner::add;
  if (!c.region_count(1) || !c.closed()) return how;
  if (!find_combiner(c.regions[0], how))
    c.fail("H009", "its program is not one of add, multiply, maximum, minimum, and, or");
  return how;
}

}  // namespace partita::stablehlo_detail
