/// Memory contents at the peak, as text.
#pragma once

#include <concepts>

#include <partita/cost/memory.hpp>
#include <partita/ir/print.hpp>
#include <partita/report/columns.hpp>
#include <partita/report/simulation.hpp>

namespace partita {

/// Prints the memory at its peak: bytes by what they hold, the op that runs then, and the `most`
/// largest values with their names in the device-local program.
///
/// Errors    those of the program, as the text "error: " and the message
template <std::same_as<partitioned> Partitioned>
constexpr text print_peak(const Partitioned& p, int most = 10) {
  text out;
  if (p.error) return out << "error: " << p.error.message << '\n';
  const program& local = p.device.local;
  const memory_peak peak = peak_of(p.device, most);
  out << "peak: ";
  print_figure(out, peak.bytes);
  out << " bytes";
  if (peak.op < 0) return out << '\n';
  const value_names names(local);
  const auto value = [&](value_id v) { return concat('%', names[v]); };
  const op_node& n = local.op(peak.op);
  out << " while " << (n.result_count > 0 ? value(n.result) : text("it")) << " = " << n.def->name
      << " runs, op " << peak.op + 1 << " of " << local.op_count() << '\n';
  report_detail::columns kinds, values;
  const auto share = [&](std::int64_t bytes) {
    return percent_text(
        peak.bytes > 0 ? static_cast<double>(bytes) / static_cast<double>(peak.bytes) : 0);
  };
  const auto line = [&](std::string_view name, std::int64_t bytes) {
    if (bytes > 0) kinds.cell(name).number(bytes, " bytes").cell(share(bytes), true).end_row();
  };
  for (int k = 0; k < memory_kinds; ++k) line(name_of(static_cast<memory_kind>(k)), peak.of[k]);
  line("of nested programs", peak.nested);
  kinds.print(out, "  ");
  if (!peak.knows_derivatives)
    out << "  (the module does not return next states and another result, so activations and "
           "gradients are unknown and count as temporary)\n";
  if (peak.largest.empty()) return out;
  out << "largest values there:\n";
  for (const resident& r : peak.largest)
    values.number(r.bytes, " bytes")
        .cell(value(r.value))
        .cell(local.op(local.producer(r.value)).def->name)
        .cell(concat(local.type(r.value)))
        .cell(name_of(r.kind))
        .end_row();
  values.print(out, "  ");
  return out;
}

}  // namespace partita
