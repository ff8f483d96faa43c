/// Programs without what no output needs, in canonical order.
#pragma once

#include <partita/ir/order.hpp>
#include <partita/ir/wires.hpp>

namespace partita {

namespace detail {

/// Which wires of an op with nested programs are needed.
struct wire_liveness {
  wire_list list;
  vec<char> live;  ///< by wire
  /// Filled for every end: is its wire live?
  vec<char> operands, results;
  vec<vec<char>> inputs, outputs;  ///< by region
};

constexpr void find_needed(const program& p, vec<char>& needed);

/// A wire is needed if one of its results is, or if a nested program needs it for what is needed;
/// wires of one end (a predicate, a loop index) belong to the op. `needed`: by value of `p`.
constexpr wire_liveness live_wires(const program& p, op_id o, const vec<char>& needed) {
  wire_liveness w;
  p.op(o).def->wires(p, o, w.list);
  const auto n = w.list.wires.size();
  w.live.resize(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const auto& ends = w.list.wires[i].ends;
    w.live[i] = ends.size() == 1;
    for (const auto& e : ends)
      if (e.kind == wire_end::result &&
          needed[static_cast<std::size_t>(p.op(o).result + e.index)] != 0)
        w.live[i] = 1;
  }
  const auto spread = [&] {  // from wires to their ends
    w.operands.assign(static_cast<std::size_t>(p.op(o).operand_count), 0);
    w.results.assign(static_cast<std::size_t>(p.op(o).result_count), 0);
    w.inputs.clear();
    w.outputs.clear();
    for (const auto& r : p.regions_of(o)) {
      w.inputs.push_back(vec<char>(r.inputs.size(), 0));
      w.outputs.push_back(vec<char>(r.outputs.size(), 0));
    }
    for (std::size_t i = 0; i < n; ++i)
      for (const auto& e : w.list.wires[i].ends) {
        const auto region = static_cast<std::size_t>(e.region);
        vec<char>& list = e.kind == wire_end::operand  ? w.operands
                          : e.kind == wire_end::result ? w.results
                          : e.kind == wire_end::input  ? w.inputs[region]
                                                       : w.outputs[region];
        list[static_cast<std::size_t>(e.index)] = w.live[i];
      }
  };
  for (bool changed = true; changed;) {
    changed = false;
    spread();
    for (int r = 0; r < p.op(o).region_count; ++r) {
      const program& q = p.region(o, r);
      vec<char> inside(q.types.size(), 0);
      for (std::size_t j = 0; j < q.outputs.size(); ++j)
        if (w.outputs[static_cast<std::size_t>(r)][j])
          inside[static_cast<std::size_t>(q.outputs[j].value)] = 1;
      find_needed(q, inside);
      for (std::size_t i = 0; i < n; ++i) {
        if (w.live[i]) continue;
        for (const auto& e : w.list.wires[i].ends)
          if (e.kind == wire_end::input && e.region == r &&
              inside[static_cast<std::size_t>(q.inputs[static_cast<std::size_t>(e.index)])]) {
            w.live[i] = 1;
            changed = true;
          }
      }
    }
  }
  return w;
}

/// Extends a set of needed values by those that they are computed from.
constexpr void find_needed(const program& p, vec<char>& needed) {
  for (op_id o = p.op_count(); o-- > 0;) {
    const op_node& n = p.op(o);
    bool any = false;
    for (int r = 0; r < n.result_count; ++r)
      any = any || needed[static_cast<std::size_t>(n.result + r)] != 0;
    if (!any) continue;
    if (n.region_count == 0) {
      for (value_id v : p.operands(o)) needed[static_cast<std::size_t>(v)] = 1;
      continue;
    }
    const wire_liveness w = live_wires(p, o, needed);
    for (int i = 0; i < n.operand_count; ++i)
      if (w.operands[static_cast<std::size_t>(i)])
        needed[static_cast<std::size_t>(p.operand(o, i))] = 1;
  }
}

constexpr program tidy(const program& p);

/// A nested program with only some of its inputs and outputs.
constexpr program part_of(const program& p, const vec<char>& inputs, const vec<char>& outputs) {
  program q = p;
  q.inputs.clear();
  q.outputs.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) q.inputs.push_back(p.inputs[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) q.outputs.push_back(p.outputs[i]);
  return tidy(q);
}

/// Some ops of a program, in another order, as a program; its inputs and outputs stay. With
/// `needed` (by value), ops with nested programs lose what nothing needs of their operands and
/// results.
constexpr program rebuilt(const program& p, const vec<op_id>& order,
                          const vec<char>* needed = nullptr) {
  program q;
  q.ops.reserve(order.size());
  q.types.reserve(order.size());
  q.producers.reserve(order.size());
  q.operand_list.reserve(p.operand_list.size());
  q.attr_list.reserve(p.attr_list.size());
  q.chars = p.chars;
  vec<value_id> renamed(p.types.size(), -1), operands;
  vec<op_id> moved(p.ops.size(), -1);
  vec<std::int64_t> attrs;
  wire_liveness w;
  for (op_id o : order) {
    const op_node& n = p.op(o);
    const bool some = needed != nullptr && n.region_count > 0;
    if (some) w = live_wires(p, o, *needed);
    operands.clear();
    for (int i = 0; i < n.operand_count; ++i)
      if (!some || w.operands[static_cast<std::size_t>(i)])
        operands.push_back(renamed[static_cast<std::size_t>(p.operand(o, i))]);
    attrs.clear();
    attrs.insert_back(p.attrs(o).begin(), p.attrs(o).end());
    if (some) n.def->pruned(attrs, w.operands, w.results);
    moved[static_cast<std::size_t>(o)] = q.append_op(*n.def, operands, attrs);
    for (int r = 0; r < n.result_count; ++r)
      if (!some || w.results[static_cast<std::size_t>(r)])
        renamed[static_cast<std::size_t>(n.result + r)] = q.append_result(p.type(n.result + r));
    for (int r = 0; r < n.region_count; ++r) {
      if (some)
        q.append_region(part_of(p.region(o, r), w.inputs[static_cast<std::size_t>(r)],
                                w.outputs[static_cast<std::size_t>(r)]));
      else
        q.append_region(program(p.region(o, r)));
    }
    q.ops.back().name = n.name;
    q.ops.back().transposed = n.transposed;
  }
  for (op_id o : order)
    if (p.op(o).origin >= 0)
      q.op(moved[static_cast<std::size_t>(o)]).origin =
          moved[static_cast<std::size_t>(p.op(o).origin)];
  for (value_id v : p.inputs) q.inputs.push_back(renamed[static_cast<std::size_t>(v)]);
  for (auto out : p.outputs)
    q.outputs.push_back({renamed[static_cast<std::size_t>(out.value)], out.name});
  return q;
}

/// Drops what no output needs, but for inputs.
constexpr program pruned(const program& p) {
  vec<char> needed(p.types.size(), 0);
  for (const auto& out : p.outputs) needed[static_cast<std::size_t>(out.value)] = 1;
  find_needed(p, needed);
  vec<op_id> order;
  for (op_id o = 0; o < p.op_count(); ++o) {
    const op_node& n = p.op(o);
    bool any = n.def->role == op_role::parameter;
    for (int r = 0; r < n.result_count; ++r)
      any = any || needed[static_cast<std::size_t>(n.result + r)] != 0;
    if (any) order.push_back(o);
  }
  return rebuilt(p, order, &needed);
}

/// The ops that the outputs need, in canonical order; inputs stay, first.
///
/// The last output comes first: a training step that returns its loss last runs forward, and then
/// backward from the last parameters to the first.
constexpr program in_canonical_order(const program& p) {
  vec<value_id> roots;
  for (std::size_t i = p.outputs.size(); i > 0; --i) roots.push_back(p.outputs[i - 1].value);
  vec<op_id> order;
  for (value_id v : p.inputs) order.push_back(p.producer(v));
  for (op_id o : canonical_order(p, roots))
    if (!p.is(o, op_role::parameter)) order.push_back(o);
  return rebuilt(p, order);
}

/// The program without what its outputs do not need, in canonical order, nested programs included.
constexpr program tidy(const program& p) {
  if (p.regions.empty()) return in_canonical_order(p);
  return in_canonical_order(pruned(p));
}

}  // namespace detail
}  // namespace partita
