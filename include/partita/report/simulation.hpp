/// Time and memory of a program after each tactic, as text.
#pragma once

#include <concepts>
#include <cstdint>

#include <partita/cost/simulate.hpp>
#include <partita/op/registry.hpp>
#include <partita/report/columns.hpp>
#include <partita/schedule/partition.hpp>

namespace partita {

/// Formats a time in seconds with three digits, in a unit that suits: `12.3 ms`.
constexpr text time_text(double seconds) {
  constexpr struct {
    std::string_view name;
    double factor;
  } units[] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}};
  int u = 0;
  while (u < 3 && seconds * units[u].factor < 1) ++u;
  const double v = seconds * units[u].factor;
  text out;
  if (!(v < 1e15)) return out << "very long";
  const int decimals = v < 10 ? 2 : v < 100 ? 1 : 0;
  const std::int64_t scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
  const auto rounded = static_cast<std::int64_t>(v * static_cast<double>(scale) + 0.5);
  out << rounded / scale;
  if (decimals > 0) out << '.';
  if (decimals == 2) out << rounded / 10 % 10;
  if (decimals > 0) out << rounded % 10;
  return out << ' ' << units[u].name;
}
/// Formats a fraction as a percentage with one decimal: `41.2 %`.
constexpr text percent_text(double part) {
  const auto permille = static_cast<std::int64_t>(part * 1000 + 0.5);
  return concat(permille / 10, '.', permille % 10, " %");
}

namespace report_detail {

constexpr void simulation_row(columns& rows, std::string_view name, const partitioned& p,
                              const machine& on) {
  const simulation s = simulate(p.device, on), hidden = simulate(p.device, on, {.overlap = true});
  rows.cell(name).cell(time_text(s.time), true).cell(time_text(hidden.time), true);
  rows.cell(time_text(s.compute), true).cell(time_text(s.communication), true);
  rows.cell(percent_text(s.mfu()), true).number(p.cost.peak_bytes).number(p.cost.collective_bytes);
  rows.cell(static_cast<double>(p.cost.peak_bytes) <= on.device.memory ? "fits" : "does not fit");
  rows.end_row();
}

}  // namespace report_detail

/// Prints a line about the program after each tactic: the time of a step if kernels and collectives
/// run in turn, the time if they overlap, time in kernels and in collectives, model FLOPs
/// utilization, peak memory, bytes that a device sends, and whether the program fits.
///
/// Errors    those of the program, and D001 or D002 for an unusable machine, as the text "error: "
///           and the message
/// Cost      for each tactic a propagation, a lowering and two simulations
template <std::same_as<partitioned> Partitioned>
constexpr text print_simulation(const Partitioned& p, const machine& on) {
  text out;
  failure f = p.error;
  if (!f) f = validate(on, p.mesh());
  if (f) return out << "error: " << f.message << '\n';
  report_detail::columns rows;
  for (const std::string_view head : {"tactic", "in turn", "overlapped", "kernels", "collectives",
                                      "MFU", "peak bytes", "bytes sent", "memory"})
    rows.cell(head, head != "tactic" && head != "memory");
  rows.end_row();
  const int count = static_cast<int>(p.tactics.size());
  for (int t = 0; t + 1 < count; ++t)
    report_detail::simulation_row(rows, p.tactics[static_cast<std::size_t>(t)].name, after(p, t),
                                  on);
  report_detail::simulation_row(rows, count > 0 ? p.tactics.back().name.view() : "none", p, on);
  out << "on " << p.mesh().whole() << " of " << on.device.name() << ":\n";
  rows.print(out, "  ");
  if (const text note = p.cost.unknown.note_on_times(); !note.empty()) out << "  " << note << '\n';
  return out;
}

}  // namespace partita
