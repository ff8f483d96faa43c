/// Names of ops in runtime errors: by the value of the model, and the tactic.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/run/transport/transport.hpp>
#include <partita/schedule/explainer.hpp>

namespace partita::backend_detail {

/// Adds to `next` the number of results of collectives before an op, in the order of the program's
/// text with nested programs: the number of its note. Returns true if the program contains the op.
inline bool find_collective(const program& p, const run_detail::transport_use& wanted, int& next) {
  for (op_id o = 0; o < p.op_count(); ++o) {
    if (&p == wanted.where && o == wanted.op) return true;
    for (const program& r : p.regions_of(o))
      if (find_collective(r, wanted, next)) return true;
    if (p.op(o).def->collective && p.collective_of(o).communicates()) next += p.op(o).result_count;
  }
  return false;
}

/// Returns a name for the op that a process works on: a collective as `all_gather <"B"> of %w1
/// (tactic "Z3")`, another op by its own name and that of its value. `notes` belong to the
/// collectives of `local` and refer to the core program.
inline text describe(const program& source, const core_program& core,
                     const vec<tactic_report>& tactics, const vec<collective_note>& notes,
                     const program& local, const run_detail::transport_use& use) {
  if (use.where == nullptr || use.op < 0) return text("a check before the first op");
  const op_node& n = use.where->op(use.op);
  int number = 0;
  const bool found = find_collective(local, use, number) && n.def->collective &&
                     number < static_cast<int>(notes.size());
  text out;
  if (found) {
    schedule_detail::explainer words(source, core);
    words.what(out, notes[number]);
    text value;
    words.value(value, notes[number].value);
    out << " of " << value;
    if (!tactics.empty()) out << " (tactic \"" << tactics[notes[number].tactic].name << "\")";
    return out;
  }
  out << n.def->name;
  if (n.result_count > 0 && !use.where->name(n.result).empty())
    out << " of \"" << use.where->name(n.result) << '"';
  return out;
}

}  // namespace partita::backend_detail
