/// Prints pipelines: units, transfers, and the list of calls of each mesh.
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
      : stage_printer(p.source, &p.topology),
        pipe_(p),
        cut_(p.source.types.size(), mesh_set{}),
        of_slot_(p.values().types.size(), -1) {
    for (value_id v = 0; v < p.source.value_count(); ++v) of_slot_[p.slot_of[v]] = v;
  }

  constexpr text print() {
    signature([&](int i) { return pipe_.input_mesh[i]; });
    transfers_behind(-1);
    for (int u = 0; u < static_cast<int>(pipe_.units.size()); ++u) {
      const pipeline_unit& unit = pipe_.units[u];
      for (const value_id v : unit.piece.inputs) cut(v, unit.piece.mesh);
      if (is_sharded())
        local_function(unit);
      else if (!unit.piece.ops.empty())
        group(head(unit), unit.piece.ops, unit.piece.inputs, made_by(unit), unit.piece.mesh);
      if (!is_sharded()) {
        for (const op_id o : unit.stacks) combined("microbatch_stack", o, unit.piece.mesh);
        for (const op_id o : unit.sums) combined("microbatch_sum", o, unit.piece.mesh);
      }
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
  vec<mesh_set> cut_;      ///< by value: meshes on which it was sliced from its stack
  vec<value_id> of_slot_;  ///< a value of the source, or -1

  constexpr text name_of(value_id slot) const {
    text name;
    if (of_slot_[slot] < 0) return name << 'v' << slot;
    return name << names_[of_slot_[slot]];
  }
  constexpr bool is_sharded() const { return !pipe_.core.p.ops.empty(); }
  /// The results of a unit without accumulators that it only passes on.
  constexpr vec<value_id> made_by(const pipeline_unit& u) const {
    vec<value_id> out;
    for (const value_id v : u.piece.outputs)
      if (!leaves(p_.op(p_.producer(v)))) out.push_back(v);
    return out;
  }
  /// A unit as one device runs it, with all operands and results.
  constexpr void local_function(const pipeline_unit& u) {
    const program& f = u.device.local;
    const auto here = [&](std::string_view name) {
      out_ << '%' << name << '@' << name_text(pipe_.topology.name(u.piece.mesh));
    };
    out_ << "  ";
    append_list(out_, f.output_count(), [&](int i) { here(name_of(u.gives[i].slot)); });
    out_ << (f.output_count() == 0 ? "" : " = ") << head(u) << '(';
    append_list(out_, f.input_count(), [&](int i) { here(name_of(u.takes[i].slot)); });
    out_ << ") {\n";
    const text body = partita::print(f, &u.device.mesh);
    std::string_view lines = body.view();
    lines.remove_prefix(lines.find('\n') + 1);
    lines = lines.substr(0, lines.rfind('}'));
    for (std::size_t end = lines.find('\n'); end != lines.npos; end = lines.find('\n')) {
      out_ << "  " << lines.substr(0, end + 1);
      lines.remove_prefix(end + 1);
    }
    out_ << "  }\n";
  }
  constexpr text head(const pipeline_unit& u) const {
    text out = fragment_head(pipe_.topology, u.piece.mesh, u.piece.origins, u.piece.stage);
    out.truncate(out.size() - 1);
    if (u.part != fragment_part::whole)
      out << ", part=" << (u.part == fragment_part::input ? "input" : "weight");
    if (u.inside) out << ", calls=" << pipe_.microbatches;
    return out << '>';
  }
  /// Prints a slice of an iteration's input at its first use on a mesh.
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
    for (std::size_t i = 0; i < pipe_.transfers.size(); ++i) {
      const transfer& t = pipe_.transfers[i];
      if (t.after != unit) continue;
      step(t.value, t.to, "transfer", t.from);
      if (is_sharded()) layouts(t, pipe_.sent_as[i]);
    }
  }
  /// Prints the layout ` [{"B"}, {}]`, and the layout at the receiver if it differs.
  constexpr void layouts(const transfer& t, const transfer_layout& l) {
    out_.truncate(out_.size() - 1);
    out_ << ' ';
    const int rank = p_.type(t.value).shape.rank;
    print_layout(out_, l.from, rank, pipe_.meshes[t.from]);
    text there;
    print_layout(there, l.to, rank, pipe_.meshes[t.to]);
    if (!(l.from == l.to)) out_ << " to " << there;
    out_ << '\n';
  }
};

}  // namespace mpmd_detail

/// Prints the units in an order of execution, each as a fragment with its number of calls, with the
/// slices, sums and transfers (of an iteration: for each microbatch); then the list of each mesh.
/// If stages are sharded, a unit is shown as one device runs it, with its accumulators among its
/// operands and results, and a transfer with the layouts of its value.
///
/// Cost: linear, except for finding the transfers after each unit.
constexpr text print(const pipelined& p) { return mpmd_detail::pipeline_printer(p).print(); }

}  // namespace partita
