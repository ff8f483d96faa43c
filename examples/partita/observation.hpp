/// The program and its partitioning state as numbers, for a learner.
///
/// Shapes depend only on the program: N nodes, one for each op (including inputs and tags); E edges
/// from an op to one that reads its result; K actions; P pairs of an action and a node whose result
/// it tiles; A axes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <partita/partita.hpp>
#include <partita/search/environment.hpp>
#include <partita/search/result.hpp>

#include "report.hpp"

namespace observations {

/// Returns the list `[write(0), write(1), ...]`.
template <class Write>
std::string json_list(int count, const Write& write) {
  std::string out = "[";
  for (int i = 0; i < count; ++i) out += (i > 0 ? ", " : "") + write(i);
  return out + "]";
}
template <class... Numbers>
std::string json_numbers(Numbers... numbers) {
  std::string out;
  ((out += (out.empty() ? "[" : ", ") + std::to_string(numbers)), ...);
  return out + "]";
}

inline std::int64_t flops_of(const partita::program& p, partita::op_id o) {
  const partita::op_node& n = p.op(o);
  if (n.result_count == 0 || n.region_count > 0 || n.def->role != partita::op_role::compute)
    return 0;
  partita::vec<partita::tensor_type> operands, more;
  for (int i = 0; i < n.operand_count; ++i) operands.push_back(p.type(p.operand(o, i)));
  for (int r = 1; r < n.result_count; ++r) more.push_back(p.type(n.result + r));
  partita::cost_context c{operands, p.type(n.result), p.attrs(o)};
  c.more = {more.data(), more.size()};
  return n.def->flops(c);
}

/// Returns the part that is the same in all states: names and sizes of axes, names of op kinds, and
///
///   nodes    [N][6]  index of the op kind, role (0 op, 1 input, 2 tag), rank, elements and bytes
///   of
///                    the first result, flops
///   edges    [E][2]  the op that makes a value, an op that reads it
///   actions  [K][4]  axis, dimension (-1: the first that the axis divides), number of values,
///   bytes members  [P][2]  action, node
inline std::string graph(const partita::environment& e, const partita::vec<int>& axes) {
  const partita::core_program& core = e.root();
  const partita::program& p = core.p;
  std::string kinds, nodes, edges, actions, members;
  const auto add = [](std::string& list, const std::string& each) {
    list += (list.empty() ? "" : ", ") + each;
  };
  partita::vec<const partita::op_def*> known;
  for (partita::op_id o = 0; o < p.op_count(); ++o) {
    const partita::op_node& n = p.op(o);
    int kind = 0;
    while (kind < static_cast<int>(known.size()) && known[kind] != n.def) ++kind;
    if (kind == static_cast<int>(known.size())) {
      known.push_back(n.def);
      add(kinds, json_text(n.def->name));
    }
    const int role = p.is(o, partita::op_role::parameter) ? 1
                     : p.is(o, partita::op_role::tag)     ? 2
                                                          : 0;
    const partita::tensor_type type =
        n.result_count > 0 ? p.type(n.result) : partita::tensor_type();
    add(nodes, json_numbers(kind, role, type.shape.rank, type.shape.elements(), type.bytes(),
                            flops_of(p, o)));
    for (int i = 0; i < n.operand_count; ++i)
      add(edges, json_numbers(p.producer(p.operand(o, i)), o));
  }
  for (int a = 0; a < e.action_count(); ++a) {
    const partita::search_move& m = e.action(a);
    int axis = 0;
    while (axes[axis] != m.axis) ++axis;
    std::int64_t bytes = 0;
    for (const auto& each : m.members) {
      bytes = partita::saturating_add(bytes, p.type(each.value).bytes());
      add(members, json_numbers(a, p.producer(each.value)));
    }
    add(actions,
        json_numbers(axis, m.members.empty() ? -1 : m.members[0].dim, m.members.size(), bytes));
  }
  const int count = static_cast<int>(axes.size());
  return "{\"axes\": " +
         json_list(count,
                   [&](int i) {
                     return json_text(partita::search_detail::axis_name(core, axes[i]).view());
                   }) +
         ", \"sizes\": " +
         json_list(count, [&](int i) { return std::to_string(core.named.size(axes[i])); }) +
         ", \"kinds\": [" + kinds + "], \"nodes\": [" + nodes + "], \"edges\": [" + edges +
         "], \"actions\": [" + actions + "], \"members\": [" + members + "]}";
}

/// Returns how the current state places an op along an axis or its sub-axes: d + 1 if the axis
/// tiles dimension d of the result, 0 if the op is not placed, -1 if the result is a sum over the
/// axis, -2 if the op is replicated.
inline int place_of(const partita::core_program& c, partita::op_id o, int axis) {
  for (const auto& each : c.nest_of(o)) {
    if (c.mesh.part(each.axis).axis != axis) continue;
    if (each.factor == partita::any_factor) return -2;
    const int dim = c.map.at(o, each.factor).result_dim;
    return dim == partita::no_dim ? -1 : dim + 1;
  }
  return 0;
}

/// Returns the part that depends on the state:
///
///   nodes    [N][A]  the result of place_of
///   mask     [K]     1 if the action is legal, else 0
///   figures  cost (as `step` reports it), exact_cost and peak_bytes (by the simulator),
///            memory_bytes, bytes_sent by a device, and the number of collectives of each kind
///
/// Cost: two lowerings and a simulation.
inline std::string observation(partita::environment& e, const partita::vec<int>& axes) {
  const partita::core_program& c = e.core();
  const auto number = [](double v) { return json_number(v); };
  const partita::environment::exact exact = e.exact_figures();
  const partita::lowered low = partita::lower(c);
  const partita::collectives& k = low.counts;
  return "{\"nodes\": " +
         json_list(e.root().p.op_count(),
                   [&](int o) {
                     return json_list(static_cast<int>(axes.size()), [&](int i) {
                       return std::to_string(place_of(c, o, c.named.at(axes[i]).axis));
                     });
                   }) +
         ", \"mask\": " +
         json_list(e.action_count(), [&](int a) { return std::string(e.legal(a) ? "1" : "0"); }) +
         ", \"figures\": {\"cost\": " + number(e.cost()) +
         ", \"exact_cost\": " + number(exact.cost) +
         ", \"peak_bytes\": " + number(exact.peak_bytes) +
         ", \"memory_bytes\": " + number(e.memory()) + ", \"bytes_sent\": " +
         std::to_string(low.error ? 0 : partita::estimate(low.device).collective_bytes) +
         ", \"all_gather\": " + std::to_string(k.all_gather) +
         ", \"all_reduce\": " + std::to_string(k.all_reduce) +
         ", \"reduce_scatter\": " + std::to_string(k.reduce_scatter) +
         ", \"all_to_all\": " + std::to_string(k.all_to_all) +
         ", \"permute\": " + std::to_string(k.permute) + "}}";
}

}  // namespace observations
