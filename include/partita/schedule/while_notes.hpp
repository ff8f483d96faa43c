/// Notes that explain why loops of a program are not scans.
#pragma once

#include <partita/ir/print.hpp>
#include <partita/op/recover_scan.hpp>

namespace partita::schedule_detail {

/// Prints a line for each `while` of a program, nested programs included: the printed name of its
/// first result, and why it is not a `scan`. A C++ while_loop that could be one gets no line.
///
/// Cost      linear in the ops of a program that has loops, otherwise in its top-level ops
constexpr void print_while_notes(text& out, const program& p, int last_number,
                                 const label_list& labels) {
  if (p.regions.empty()) return;
  const value_names names(p, last_number, labels);
  for (op_id o = 0; o < p.op_count(); ++o) {
    const op_node& n = p.op(o);
    if (n.def->id == def<op::while_loop>.id) {
      const text why =
          op_detail::scan_analysis(p, p.operands(o), p.region(o, 0), p.region(o, 1)).why_not;
      if (!why.empty())
        out << "note: loop %" << names[n.result] << " stays a while: " << why << '\n';
    }
    for (const program& r : p.regions_of(o)) print_while_notes(out, r, names.last_number(), labels);
  }
}
constexpr void print_while_notes(text& out, const program& p) {
  print_while_notes(out, p, 0, p.labels);
}

}  // namespace partita::schedule_detail
