/// Pipelines as text: units, what is sent, and the list of calls of each mesh.
#pragma once

#include <string_view>

#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/mpmd/print_mpmd.hpp>

namespace partita {

namespace mpmd_detail {

class pipeline_printer : stage_printer {
 public:
  constexpr explicit pipeline_printer(const pipelined& p)
      : stage_printer(p.source, &p.topology), pipe_(p), cut_(p.source.types.size(), mesh_set{}) {}

  constexpr text print() {
    signature([&](int i) { return pipe_.input_mesh[i]; });
    transfers_behind(-1);
    for (int u = 0; u < static_cast<int>(pipe_.units.size()); ++u) {
      const pipeline_unit& unit = pipe_.units[u];
      for (const value_id v : unit.piece.inputs) cut(v, unit.piece.mesh);
      group(head(unit), unit.piece.ops, unit.piece.inputs, unit.piece.outputs, unit.piece.mesh);
      for (const op_id o : unit.stacks) combined("microbatch_stack", o, unit.piece.mesh);
      for (const op_id o : unit.sums) combined("microbatch_sum", o, unit.piece.mesh);
      transfers_behind(u);
    }
    results([&](int i) { return pipe_.output_mesh[i]; });
    for (int m = 0; m < pipe_.topology.count(); ++m)
      out_ << name_text(pipe_.topology.name(m)) << ": " << pipe_.order_of(pipe_.topology.name(m))
           << '\n';
    return static_cast<text&&>(out_);
  }

 private:
  const pipelined& pipe_;
  vec<mesh_set> cut_;  ///< by value: meshes on which it was cut out of its stack

  constexpr text head(const pipeline_unit& u) const {
    text out = fragment_head(pipe_.topology, u.piece.mesh, u.piece.origins, u.piece.stage);
    out.truncate(out.size() - 1);
    if (u.part != fragment_part::whole)
      out << ", part=" << (u.part == fragment_part::input ? "input" : "weight");
    if (u.inside) out << ", calls=" << pipe_.microbatches;
    return out << '>';
  }
  /// A slice of what enters an iteration, where it is taken first on a mesh.
  constexpr void cut(value_id v, int mesh) {
    const op_id o = p_.producer(v);
    if (p_.op(o).def->id != def<op::microbatch_slice>.id || cut_[v].has(mesh)) return;
    cut_[v] |= mesh_set::of(mesh);
    out_ << "  " << at(v, mesh) << " = microbatch_slice " << at(p_.operand(o, 0), mesh) << " : "
         << p_.type(v) << '\n';
  }
  constexpr void combined(std::string_view how, op_id o, int mesh) {
    const value_id v = p_.op(o).result;
    out_ << "  " << at(v, mesh) << " = " << how << " %" << names_[p_.operand(o, 0)] << " : "
         << p_.type(v) << '\n';
  }
  constexpr void transfers_behind(int unit) {
    for (const transfer& t : pipe_.transfers)
      if (t.after == unit) step(t.value, t.to, "transfer", t.from);
  }
};

}  // namespace mpmd_detail

/// The units in an order of execution, each as a fragment of so many calls, with what is cut for
/// them, accumulated and sent (of an iteration: for each microbatch); then what each mesh runs.
///
/// Cost: linear, but for looking for transfers behind each unit.
constexpr text print(const pipelined& p) { return mpmd_detail::pipeline_printer(p).print(); }

}  // namespace partita
