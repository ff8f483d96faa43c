/// Checks that the parts of a pipeline are consistent before it is proved.
#pragma once

#include <cstddef>
#include <string_view>

#include <partita/mpmd/check_joint.hpp>
#include <partita/prove/given.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita::mpmd_detail {

/// Checks numbers and types of the parts of a pipeline.
///
/// Errors    Q001 and Q002 inputs and outputs, Q006 and Q007 the programs of units, Q011 other
///           parts
class given_pipeline {
 public:
  constexpr given_pipeline(const program& source, const pipelined& p) : source_(source), p_(p) {}

  constexpr failure check() {
    check_counts();
    for (int u = 0; u < static_cast<int>(p_.units.size()) && !f_; ++u) check(p_.units[u]);
    for (std::size_t t = 0; t < p_.transfers.size() && !f_; ++t) {
      const int rank = p_.values().type(p_.slot_of[p_.transfers[t].value]).shape.rank;
      check("a value that is sent", p_.sent_as[t].from, rank, p_.transfers[t].from);
      check("a value that is sent", p_.sent_as[t].to, rank, p_.transfers[t].to);
    }
    for (int i = 0; i < source_.input_count() && !f_; ++i)
      check(source_.input_name(i), p_.input_layout[i], source_.input_type(i).shape.rank,
            p_.input_mesh[i]);
    for (int i = 0; i < source_.output_count() && !f_; ++i)
      check(source_.output_name(i), p_.output_layout[i], source_.output_type(i).shape.rank,
            p_.output_mesh[i]);
    return f_;
  }

 private:
  const program& source_;
  const pipelined& p_;
  failure f_;

  constexpr bool is_mesh(int m) const { return within(m, p_.meshes.size()); }
  constexpr bool is_slot(value_id v) const { return within(v, p_.values().types.size()); }
  constexpr void need(bool good, std::string_view what) {
    if (!good)
      f_.record("Q011", "prove: the pipeline is inconsistent: ", what,
                " do not fit the rest of it");
  }
  /// True if a mesh has the axes of the topology, by name. An axis that the mesh lacks has size 1;
  /// without sharding, a mesh is one device.
  constexpr bool as_in_topology(int number) const {
    const mesh &has = p_.meshes[number], &given = p_.topology.mesh_of(number);
    bool same = true;
    for (int a = 0; a < given.rank && has.rank > 0; ++a) {
      const int i = has.find(given.name(a));
      same = same && i >= 0 && has.whole_size(i) == given.size(a);
    }
    for (int i = 0; i < has.whole_rank(); ++i)
      same = same && (given.find(has.name(i)) >= 0 || has.whole_size(i) == 1);
    return same;
  }
  constexpr void check_counts() {
    const program& p = p_.source;
    if (p.input_count() != source_.input_count() || p.output_count() != source_.output_count())
      return f_.record("Q001", "prove: the source has ", source_.input_count(), " inputs and ",
                       source_.output_count(), " outputs, the pipeline ", p.input_count(), " and ",
                       p.output_count());
    bool good = p_.microbatches >= 1 &&
                p_.meshes.size() == static_cast<std::size_t>(p_.topology.count()) &&
                p_.lists.meshes.size() == p_.meshes.size();
    for (const auto& m : p_.meshes)
      for (int a = 0; a < m.rank; ++a) good = good && m.size(a) >= 1;
    for (int m = 0; good && m < p_.topology.count(); ++m) good = as_in_topology(m);
    need(good, "meshes");
    need(p_.input_mesh.size() == p.inputs.size() && p_.input_layout.size() == p.inputs.size() &&
             p_.output_mesh.size() == p.outputs.size() &&
             p_.output_layout.size() == p.outputs.size() &&
             p_.output_slot.size() == p.outputs.size(),
         "inputs and outputs");
    need(p_.slot_of.size() == p.types.size() && p_.repeated.size() == p_.values().types.size() &&
             (p_.next_slot.empty() || p_.next_slot.size() == p_.values().types.size()),
         "values");
    need(p_.sent_as.size() == p_.transfers.size(), "transfers");
    need(p_.unit_of.size() == p_.calls.calls.size(), "calls");
    if (!f_) check_numbers();
  }
  constexpr void check_numbers() {
    bool good = true;
    for (const value_id v : p_.slot_of) good = good && is_slot(v);
    for (const value_id v : p_.output_slot) good = good && is_slot(v);
    for (const value_id v : p_.source.inputs)
      good = good && is_slot(p_.slot_of[v]) && p_.repeated[p_.slot_of[v]] == 0;
    for (std::size_t v = 0; v < p_.next_slot.size(); ++v)
      if (const value_id next = p_.next_slot[v]; next != -1)
        good = good && is_slot(next) && p_.repeated[next] != 0 &&
               is_state(p_.values().op(p_.values().producer(static_cast<value_id>(v))));
    need(good, "values");
    for (const auto* list : {&p_.input_mesh, &p_.output_mesh})
      for (const int m : *list) good = good && is_mesh(m);
    need(good, "inputs and outputs");
    for (const transfer& t : p_.transfers)
      good = good && is_mesh(t.from) && is_mesh(t.to) && within(t.value, p_.slot_of.size()) &&
             t.after < static_cast<int>(p_.units.size());
    need(good, "transfers");
    for (const int u : p_.unit_of) good = good && within(u, p_.units.size());
    for (const int c : p_.order) good = good && within(c, p_.unit_of.size());
    for (const message& m : p_.lists.messages)
      good = good && within(m.transfer, p_.transfers.size()) && m.microbatch < p_.microbatches;
    for (const auto& list : p_.lists.meshes)
      for (const mesh_step& s : list)
        good = good && within(s.index, s.kind == mesh_step::call ? p_.unit_of.size()
                                                                 : p_.lists.messages.size());
    need(good, "calls");
  }
  constexpr void check(std::string_view what, const layout& l, int rank, int m) {
    prove_detail::given_program(p_.source, p_.meshes[m], f_).check_axes("value", what, l);
    bool good = true;
    axis_set seen;
    for (const auto& e : l) {
      good = good && e.dim >= 0 && e.dim < rank && !seen.contains(e.axis);
      seen.insert(e.axis);
    }
    need(good, "layouts");
  }
  constexpr void check(const pipeline_unit& u) {
    const program& local = u.device.local;
    need(is_mesh(u.piece.mesh) && u.takes.size() == local.inputs.size() &&
             u.gives.size() == local.outputs.size() && u.takes.size() >= u.sums.size() &&
             u.gives.size() >= u.sums.size() + u.stacks.size() &&
             (u.inside || u.sums.size() + u.stacks.size() == 0),
         "units");
    if (f_) return;
    need(u.device.inputs.size() == u.takes.size() && u.device.outputs.size() == u.gives.size(),
         "layouts of units");
    for (int k = 0; k < local.input_count() && !f_; ++k)
      check(u.takes[k], u.device.inputs[k], local.input_type(k).shape.rank, u.piece.mesh);
    for (int k = 0; k < local.output_count() && !f_; ++k)
      check(u.gives[k], u.device.outputs[k], local.output_type(k).shape.rank, u.piece.mesh);
    vec<value_id> slots;
    for (const auto& v : u.gives) slots.push_back(v.slot);
    merge_sort(slots, [](value_id a, value_id b) { return a < b; });
    for (std::size_t k = 1; k < slots.size(); ++k) need(slots[k] != slots[k - 1], "units");
    const std::size_t results = u.gives.size() - u.sums.size() - u.stacks.size();
    for (std::size_t k = 0; k < results && !f_; ++k)
      need((p_.repeated[u.gives[k].slot] != 0) == u.inside, "units");
    need(u.device.mesh.same_grid(p_.meshes[u.piece.mesh]), "meshes of units");
    prove_detail::given_program(local, p_.meshes[u.piece.mesh], f_).check();
  }
  /// (A stack also has the dimension of the microbatches.)
  constexpr void check(const unit_value& v, const layout& local, int rank, int m) {
    need(is_slot(v.slot), "units");
    check("a value that a unit takes or returns", v.lies, rank + 1, m);
    check("a value that a unit takes or returns", local, rank, m);
  }
};

}  // namespace partita::mpmd_detail
