/// Mutants of pipelines: one small change each of the operands and results of units, of transfers,
/// of lists, of the meshes of inputs and outputs, or of the program of a unit.
///
/// Not drawn: changes of the numbers of meshes, of units and of microbatches.
#pragma once

#include <algorithm>
#include <string_view>

#include <partita/mpmd/pipelined.hpp>

#include "mutants.hpp"

namespace mutants {

/// Returns the number of values that a joint function returns, apart from slices and accumulators.
inline std::size_t results_of(const pt::joint_function& f) {
  return f.whole.gives.size() - f.whole.sums.size() - f.whole.stacks.size();
}
/// Removes a result of a function from its list, so that its users do not find it.
inline bool leave_out(pt::joint_function& f, std::size_t k) {
  std::size_t nth = 0;
  for (char& each : f.given)
    if (each != 0 && nth++ == k) each = 0;
  const auto without = [&](auto& list) {
    for (std::size_t i = k; i + 1 < list.size(); ++i) list[i] = list[i + 1];
    list.pop_back();
  };
  without(f.whole.gives);
  without(f.gives_ahead);
  without(f.whole.device.outputs);
  without(f.whole.device.output_types);
  without(f.whole.device.local.outputs);
  return true;
}

class pipeline_change {
  using vec_of_ops = std::vector<op_id>;
  pt::pipelined& p_;
  random& r_;

  /// (The program of a core is immutable; only a mutant changes it.)
  pt::program& values() { return const_cast<pt::program&>(p_.values()); }
  template <class List>
  std::size_t index(const List& list) {
    return static_cast<std::size_t>(r_.in(0, static_cast<std::int64_t>(list.size()) - 1));
  }
  template <class List>
  auto& some(List& list) {
    return list[index(list)];
  }
  template <class T>
  static bool replace(T& where, T by) {
    const bool other = where != by;
    where = by;
    return other;
  }

 public:
  pipeline_change(pt::pipelined& p, random& r) : p_(p), r_(r) {}

  bool other_program() {
    pt::pipeline_unit& u = some(p_.units);
    const mutant m = make_mutant(u.device, r_.next());
    if (m.kind < 0 || pt::verify(m.program)) return false;
    u.device = m.program;
    return true;
  }
  bool accumulator() {
    pt::pipeline_unit& u = some(p_.units);
    if (u.sums.empty()) return false;
    const int i = static_cast<int>(r_.in(1, static_cast<std::int64_t>(u.sums.size())));
    pt::program& local = u.device.local;
    const op_id o = local.producer(local.outputs[local.outputs.size() - i].value);
    if (local.op(o).operand_count != 2) return false;
    const int side = static_cast<int>(r_.in(0, 1));
    set_operand(local, o, side, local.operand(o, 1 - side));
    return true;
  }
  bool takes_exchanged() { return exchanged(some(p_.units).takes); }
  bool gives_exchanged() { return exchanged(some(p_.units).gives); }
  bool other_slot() {
    pt::pipeline_unit& u = some(p_.units);
    auto& list = r_.one_in(2) ? u.takes : u.gives;
    return !list.empty() && replace(some(list).slot, some_slot());
  }
  bool other_unit_layout() {
    pt::pipeline_unit& u = some(p_.units);
    const bool takes = r_.one_in(2);
    auto& list = takes ? u.takes : u.gives;
    if (list.empty()) return false;
    const auto k = index(list);
    const pt::mesh& m = u.device.mesh;
    if (m.rank > 0 && r_.one_in(3)) {
      pt::axis_set one;
      one.insert(static_cast<int>(r_.in(0, m.rank - 1)));
      list[k].terms = list[k].terms.empty() ? one : pt::axis_set();
      return true;
    }
    if (!relaid(list[k].lies, m, 3)) return false;
    if (r_.one_in(2)) (takes ? u.device.inputs : u.device.outputs)[k] = list[k].lies;
    return true;
  }
  bool other_sums() {
    pt::pipeline_unit& u = some(p_.units);
    if (r_.one_in(2) && !u.sums.empty())
      u.sums.pop_back();
    else if (r_.one_in(2) && !u.stacks.empty())
      u.stacks.pop_back();
    else if (!u.gives.empty())
      u.sums.push_back(0);
    return true;
  }
  bool other_transfer() {
    if (p_.transfers.empty()) return false;
    pt::transfer& t = some(p_.transfers);
    switch (r_.in(0, 3)) {
      case 0:
        return replace(t.value, static_cast<value_id>(r_.in(0, p_.source.value_count() - 1)));
      case 1:
        return replace(t.from, some_mesh());
      case 2:
        return replace(t.to, some_mesh());
      default:
        return replace(t.after, static_cast<int>(r_.in(-1, static_cast<int>(p_.units.size()) - 1)));
    }
  }
  bool other_transfer_layout() {
    if (p_.transfers.empty()) return false;
    const auto t = index(p_.transfers);
    const bool from = r_.one_in(2);
    auto& l = from ? p_.sent_as[t].from : p_.sent_as[t].to;
    return relaid(l, p_.meshes[from ? p_.transfers[t].from : p_.transfers[t].to], 3);
  }
  bool other_steps() {
    auto& list = some(p_.lists.meshes);
    if (list.empty()) return false;
    const auto i = index(list);
    if (r_.one_in(4)) {
      list.push_back(list[i]);
    } else if (r_.one_in(3)) {
      for (auto k = i; k + 1 < list.size(); ++k) list[k] = list[k + 1];
      list.pop_back();
    } else {
      std::swap(list[i], list[index(list)]);
    }
    return true;
  }
  bool other_message() {
    if (p_.lists.messages.empty()) return false;
    pt::message& m = some(p_.lists.messages);
    return r_.one_in(2) ? replace(m.microbatch, static_cast<int>(r_.in(-1, p_.microbatches - 1)))
                        : replace(m.transfer, static_cast<int>(index(p_.transfers)));
  }
  bool other_call() {
    const auto c = index(p_.unit_of);
    return r_.one_in(2) ? replace(p_.unit_of[c], static_cast<int>(index(p_.units)))
                        : replace(p_.calls.calls[c].microbatch,
                                  static_cast<int>(r_.in(-1, p_.microbatches - 1)));
  }
  bool other_interface() {
    const bool input = r_.one_in(2);
    auto& meshes = input ? p_.input_mesh : p_.output_mesh;
    auto& layouts = input ? p_.input_layout : p_.output_layout;
    const auto i = index(meshes);
    switch (r_.in(0, 2)) {
      case 0:
        return replace(meshes[i], some_mesh());
      case 1:
        return relaid(layouts[i], p_.meshes[meshes[i]], 3);
      default:
        return replace(input ? p_.slot_of[p_.source.inputs[i]] : p_.output_slot[i], some_slot());
    }
  }
  bool other_combiner_of_slot() {
    pt::program& p = values();
    vec_of_ops sums;
    for (op_id o = 0; o < p.op_count(); ++o)
      if (p.op(o).def->id == pt::def<pt::op::microbatch_sum>.id) sums.push_back(o);
    if (sums.empty()) return false;
    const op_id o = r_.pick(sums);
    const std::int64_t other = r_.in(0, 6);
    const bool differs = p.attrs(o)[0] != other;
    set_attributes(p, o, {other});
    return differs;
  }
  bool other_slice() {
    pt::program& p = values();
    vec_of_ops slices;
    for (op_id o = 0; o < p.op_count(); ++o)
      if (p.op(o).def->id == pt::def<pt::op::microbatch_slice>.id) slices.push_back(o);
    if (slices.empty()) return false;
    const op_id o = r_.pick(slices);
    const value_id before = p.operand(o, 0);
    set_operand(p, o, 0, r_.one_in(2) ? p.operand(r_.pick(slices), 0) : some_slot());
    return p.operand(o, 0) != before;
  }
  /// Changes the function of merged calls, or which calls are merged.
  bool other_joint() {
    if (p_.joint_calls.empty()) return false;
    pt::joint_function& f = some(p_.joint_functions);
    switch (r_.in(0, 7)) {
      case 0:
        return exchanged(f.whole.takes);
      case 1:
        return exchanged(f.whole.gives);
      case 2: {
        auto& ahead = r_.one_in(2) ? f.takes_ahead : f.gives_ahead;
        return !ahead.empty() && replace(some(ahead), static_cast<int>(r_.in(0, 1)));
      }
      case 3: {
        const mutant m = make_mutant(f.whole.device, r_.next());
        if (m.kind < 0 || pt::verify(m.program)) return false;
        f.whole.device = m.program;
        return true;
      }
      case 4: {
        auto& calls = some(p_.joint_calls).calls;
        std::swap(calls[0], some(calls));
        return true;
      }
      case 5:
        return gives_less(f);
      case 6:
        std::swap(some(f.parts), some(f.parts));
        return true;
      default:
        return replace(some(p_.joint_calls).function, static_cast<int>(index(p_.joint_functions)));
    }
  }
  bool gives_less(pt::joint_function& f) {
    const std::size_t results = results_of(f);
    return results > 0 &&
           leave_out(f, static_cast<std::size_t>(r_.in(0, static_cast<std::int64_t>(results) - 1)));
  }
  bool other_repeated() {
    char& each = some(p_.repeated);
    each = each == 0;
    return true;
  }

 private:
  int some_mesh() { return static_cast<int>(r_.in(0, p_.topology.count() - 1)); }
  value_id some_slot() { return static_cast<value_id>(r_.in(0, values().value_count() - 1)); }
  /// Exchanges values, mostly of the same type: others are refused at once.
  bool exchanged(pt::vec<pt::unit_value>& list) {
    if (list.size() < 2) return false;
    auto &a = some(list), &b = some(list);
    for (int tries = 0; tries < 10 && values().type(a.slot) != values().type(b.slot); ++tries)
      std::swap(a.slot, some(list).slot);
    std::swap(a.slot, b.slot);
    return a.slot != b.slot;
  }
  bool relaid(pt::layout& l, const pt::mesh& m, int rank) {
    entries list = entries_of(l);
    if (!list.empty() && r_.one_in(2)) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(index(list)));
    } else {
      if (m.rank == 0) return false;
      const int axis = static_cast<int>(r_.in(0, m.rank - 1));
      list.erase(std::remove_if(list.begin(), list.end(), [&](auto e) { return e.axis == axis; }),
                 list.end());
      list.push_back(
          {static_cast<std::int8_t>(axis), static_cast<std::int8_t>(r_.in(0, rank - 1))});
    }
    const pt::layout now = layout_of(list);
    const bool other = now != l;
    l = now;
    return other;
  }
};

struct pipeline_kind {
  std::string_view name;
  int weight;
  bool (pipeline_change::*make)();
};
inline constexpr pipeline_kind pipeline_kinds[] = {
    {"other program of a unit", 10, &pipeline_change::other_program},
    {"other accumulator", 3, &pipeline_change::accumulator},
    {"takes exchanged", 4, &pipeline_change::takes_exchanged},
    {"gives exchanged", 3, &pipeline_change::gives_exchanged},
    {"other slot", 4, &pipeline_change::other_slot},
    {"other layout of a unit", 4, &pipeline_change::other_unit_layout},
    {"other sums", 1, &pipeline_change::other_sums},
    {"other transfer", 4, &pipeline_change::other_transfer},
    {"other layout of a transfer", 4, &pipeline_change::other_transfer_layout},
    {"other steps", 4, &pipeline_change::other_steps},
    {"other message", 3, &pipeline_change::other_message},
    {"other call", 3, &pipeline_change::other_call},
    {"other inputs and outputs", 4, &pipeline_change::other_interface},
    {"other combiner of a slot", 2, &pipeline_change::other_combiner_of_slot},
    {"other slice", 2, &pipeline_change::other_slice},
    {"other kind of slot", 1, &pipeline_change::other_repeated},
    {"other joint calls", 4, &pipeline_change::other_joint}};
inline constexpr int pipeline_kind_count = static_cast<int>(std::size(pipeline_kinds));

/// Changes a pipeline and returns the kind of the change, or -1.
inline int mutate(pt::pipelined& p, std::uint64_t seed) {
  random r{seed};
  int total = 0;
  for (const auto& k : pipeline_kinds) total += k.weight;
  for (int tries = 0; tries < 50; ++tries) {
    auto n = r.in(0, total - 1);
    int k = 0;
    while ((n -= pipeline_kinds[k].weight) >= 0) ++k;
    pt::pipelined changed = p;
    if (!(pipeline_change(changed, r).*pipeline_kinds[k].make)()) continue;
    p = std::move(changed);
    return k;
  }
  return -1;
}

}  // namespace mutants
