/// Pipelines as the list of all calls and copies of a step, and the functions that they call.
///
/// Source    Shardy:MPMD, export: names of functions, and what a call waits for (`after`)
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/mpmd/pipelined.hpp>
#include <partita/mpmd/print_mpmd.hpp>
#include <partita/op/microbatch.hpp>

namespace partita {

namespace mpmd_detail {

/// The name of a mesh where it needs no quotes, else its number.
constexpr text mesh_text(const topology& t, int mesh) {
  const text name = name_text(t.name(mesh));
  return name == t.name(mesh) ? name : concat("mesh", mesh);
}
/// `p2_stage1_fwd_bwd_calls0to7.main`: the third function that is called.
constexpr text function_name(const pipelined& p, int unit, int number) {
  const pipeline_unit& u = p.units[unit];
  text out = concat('p', number, '_');
  if (u.piece.stage >= 0)
    out << "stage" << u.piece.stage << '_';
  else
    out << mesh_text(p.topology, u.piece.mesh) << '_';
  if (!u.inside) return out << "update.main";
  const unsigned kinds =
      fragment_call{.transposed = u.transposed, .part = u.part, .joined = u.joined}.kinds();
  constexpr std::string_view names[] = {"fwd_", "bwd_", "weight_", "further_"};
  for (int k = 0; k < 4; ++k)
    if ((kinds >> k & 1) != 0) out << names[k];
  out << "calls0";
  if (p.microbatches > 1) out << "to" << p.microbatches - 1;
  return out << ".main";
}

class call_printer : stage_printer {
 public:
  constexpr explicit call_printer(const pipelined& p)
      : stage_printer(p.source, &p.topology),
        pipe_(p),
        names_of_units_(p.units.size(), text()),
        of_slot_(p.values().types.size(), -1),
        last_(static_cast<std::size_t>(p.topology.count()), -1) {
    for (value_id v = 0; v < p.source.value_count(); ++v) of_slot_[p.slot_of[v]] = v;
    first_device_.push_back(0);
    for (int m = 0; m < p.topology.count(); ++m)
      first_device_.push_back(
          saturating_add(first_device_.back(), p.topology.mesh_of(m).devices()));
  }

  constexpr text print() {
    signature([&](int i) { return pipe_.input_mesh[i]; });
    for (const transfer& t : pipe_.transfers)
      if (t.after < 0) copy(t, -1);
    vec<int> by_call(pipe_.calls.calls.size(), -1), next(pipe_.lists.messages.size(), -1);
    for (int i = static_cast<int>(next.size()); i-- > 0;) {  // messages behind each call
      int& first = by_call[pipe_.lists.messages[i].call];
      next[i] = first;
      first = i;
    }
    for (const int c : pipe_.order) {
      call(c);
      for (int i = by_call[c]; i >= 0; i = next[i]) {
        const message& m = pipe_.lists.messages[i];
        copy(pipe_.transfers[m.transfer], m.microbatch);
      }
    }
    results([&](int i) { return pipe_.output_mesh[i]; });
    for (const int u : called_) function(u);
    return static_cast<text&&>(out_);
  }

 private:
  const pipelined& pipe_;
  vec<text> names_of_units_;
  vec<value_id> of_slot_;           ///< a value of the source, or -1
  vec<int> last_;                   ///< by mesh: its last call so far
  vec<std::int64_t> first_device_;  ///< by mesh, and the end
  vec<int> called_;                 ///< units, in the order of their first calls
  int calls_ = 0;

  /// `%x5#3@m1` of microbatch 3, `%x5@m1` of none.
  constexpr text of(value_id slot, int mesh, int microbatch) const {
    const value_id v = of_slot_[slot];
    text out = "%";
    if (v < 0)
      out << 'v' << slot;
    else
      out << names_[v];
    const bool each = v >= 0 && pipe_.inside[p_.producer(v)] != 0;
    if (each && microbatch >= 0) out << '#' << microbatch;
    return out << '@' << name_text(t_->name(mesh));
  }
  constexpr text element(value_id stack, int mesh, int microbatch) const {
    text out = "%";
    return out << names_[stack] << '[' << microbatch << "]@" << name_text(t_->name(mesh));
  }
  constexpr text taken(value_id slot, int mesh, int microbatch) const {
    const value_id v = of_slot_[slot];
    if (v < 0) return of(slot, mesh, microbatch);
    const op_id o = p_.producer(v);
    if (p_.op(o).def->id == def<op::microbatch_index>.id) return concat(microbatch);
    if (p_.op(o).def->id == def<op::microbatch_slice>.id)
      return element(p_.operand(o, 0), mesh, microbatch);
    return of(slot, mesh, microbatch);
  }
  constexpr text given(const pipeline_unit& u, int i, int microbatch) const {
    const int sums = static_cast<int>(u.gives.size() - u.sums.size()),
              stacks = sums - static_cast<int>(u.stacks.size());
    if (i >= stacks && i < sums)
      return element(p_.op(u.stacks[i - stacks]).result, u.piece.mesh, microbatch);
    return of(u.gives[i].slot, u.piece.mesh, microbatch);
  }
  constexpr void call(int c) {
    const int unit = pipe_.unit_of[c], microbatch = pipe_.calls.calls[c].microbatch;
    const pipeline_unit& u = pipe_.units[unit];
    if (names_of_units_[unit].empty()) {
      names_of_units_[unit] = function_name(pipe_, unit, static_cast<int>(called_.size()));
      called_.push_back(unit);
    }
    out_ << "  ";
    append_list(out_, static_cast<int>(u.gives.size()),
                [&](int i) { out_ << given(u, i, microbatch); });
    out_ << (u.gives.empty() ? "!" : ", !") << calls_ << " = call @" << names_of_units_[unit]
         << '(';
    append_list(out_, static_cast<int>(u.takes.size()),
                [&](int i) { out_ << taken(u.takes[i].slot, u.piece.mesh, microbatch); });
    out_ << ')';
    int& before = last_[u.piece.mesh];
    if (before >= 0) out_ << " after !" << before;
    before = calls_++;
    devices(u.piece.mesh);
  }
  constexpr void devices(int mesh) {
    const std::int64_t first = first_device_[mesh], end = first_device_[mesh + 1];
    out_ << " on devices [" << first;
    if (end - first > 1) out_ << (end - first > 2 ? " to " : ", ") << end - 1;
    out_ << "]\n";
  }
  constexpr void copy(const transfer& t, int microbatch) {
    const value_id slot = pipe_.slot_of[t.value];
    out_ << "  " << of(slot, t.to, microbatch) << " = copy " << of(slot, t.from, microbatch)
         << " : " << p_.type(t.value) << '\n';
  }
  constexpr void function(int u) {
    const device_program& d = pipe_.units[u].device;
    const text all = partita::print(d.local, d.mesh.rank > 0 ? &d.mesh : nullptr);
    constexpr std::string_view head = "func @main";
    out_ << "func @" << names_of_units_[u] << all.view().substr(head.size());
  }
};

}  // namespace mpmd_detail

/// All calls of a step in an order of execution, with microbatches unrolled, and what is copied
/// between meshes behind the calls that make it: `%x5#3@m1` is %x5 of microbatch 3 on m1, `%x2[3]`
/// a slice of a stack; `!7` stands for the end of a call, and `after` for the call before on the
/// mesh. Then the functions, one for all calls of a unit, as one device runs them.
///
/// Cost: linear in calls, in what they take and give, and in the ops of units.
constexpr text print_calls(const pipelined& p) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return mpmd_detail::call_printer(p).print();
}

}  // namespace partita
