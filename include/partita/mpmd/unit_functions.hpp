/// Writes the functions of unsharded units, for which a mesh is one device.
#pragma once

#include <partita/ir/source_ids.hpp>
#include <partita/mpmd/fragments.hpp>
#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/pipelined.hpp>

namespace partita::mpmd_detail {

/// By op of the source: the first unit that runs it, or -1.
constexpr vec<int> first_units(const vec<pipeline_unit>& units, std::size_t ops) {
  vec<int> first(ops, -1);
  for (int u = static_cast<int>(units.size()); u-- > 0;)
    for (const op_id o : units[u].piece.ops) first[o] = u;
  return first;
}

/// Writes the ops, operands and results of units from their program. Ops that an earlier unit runs
/// too are marked as recomputed.
class function_writer {
 public:
  constexpr explicit function_writer(const program& p) : p_(p) {}

  /// `again(op)`: true if an earlier unit runs the op, too.
  template <class Again>
  constexpr void write(pipeline_unit& unit, fragment_programs& programs, const Again& again) const {
    unit.device = {};
    unit.takes.clear();
    unit.gives.clear();
    vec<value_id> accumulated;
    for (const op_id o : unit.sums) accumulated.push_back(p_.op(o).result);
    program& f = unit.device.local;
    f = programs(unit.piece, accumulated);
    for (std::size_t i = 0, at = unit.piece.inputs.size() + accumulated.size();
         i < unit.piece.ops.size(); ++i)
      if (again(unit.piece.ops[i])) mark_again(f, static_cast<op_id>(at + i));
    for (const op_id o : unit.stacks)
      programs.give(f, programs.copy_of(p_.operand(o, 0)), p_.op(o).result);
    for (const op_id o : unit.sums) accumulate(f, o, programs);
    for (const value_id v : unit.piece.inputs) unit.takes.push_back({v, {}, {}});
    for (const value_id v : unit.piece.outputs) unit.gives.push_back({v, {}, {}});
    for (const op_id o : unit.stacks) unit.gives.push_back({p_.op(o).result, {}, {}});
    for (const op_id o : unit.sums) {
      unit.takes.push_back({p_.op(o).result, {}, {}});
      unit.gives.push_back({p_.op(o).result, {}, {}});
    }
    describe(unit.device);
  }

 private:
  const program& p_;

  static constexpr void describe(device_program& d) {
    for (int i = 0; i < d.local.input_count(); ++i) d.input_types.push_back(d.local.input_type(i));
    for (int i = 0; i < d.local.output_count(); ++i)
      d.output_types.push_back(d.local.output_type(i));
    d.inputs.resize(d.input_types.size(), layout{});
    d.outputs.resize(d.output_types.size(), layout{});
  }
  constexpr void accumulate(program& f, op_id sum, const fragment_programs& programs) const {
    const auto c = static_cast<combiner>(p_.attrs(sum)[0]);
    const op_node& n = p_.op(sum);
    const value_id both[] = {programs.copy_of(n.result), programs.copy_of(p_.operand(sum, 0))};
    const value_id next =
        c == combiner::stack ? both[1]
                             : append_for(f, n.marks, combining_op(c), both, {}, p_.type(n.result));
    programs.give(f, next, n.result);
  }
};

/// Cost: linear in the program, once, and then in each unit.
constexpr void write_whole_functions(pipelined& out, const program& p) {
  fragment_programs programs(p);
  const vec<int> first = first_units(out.units, p.ops.size());
  for (int u = 0; u < static_cast<int>(out.units.size()); ++u)
    function_writer(p).write(out.units[u], programs, [&](op_id o) { return first[o] < u; });
}

}  // namespace partita::mpmd_detail
