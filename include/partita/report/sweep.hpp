/// A program under several schedules on several systems, in one table.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <partita/cost/design.hpp>
#include <partita/cost/simulate.hpp>
#include <partita/report/columns.hpp>
#include <partita/report/simulation.hpp>
#include <partita/schedule/partition.hpp>

namespace partita {

/// The cost of a schedule on a design.
struct sweep_row {
  text design, schedule;
  std::int64_t devices = 0, peak_bytes = 0, memory = 0, bytes_sent = 0;
  double time = 0;        ///< seconds per step if kernels and collectives run in turn
  double overlapped = 0;  ///< seconds per step if collectives run beside kernels
  double mfu = 0;
  bool pipelined = false;          ///< runs over several meshes, so that the next two figures apply
  double bubble = 0;               ///< fraction of the time
  std::int64_t message_bytes = 0;  ///< between meshes, of global values
  int unknown_loops = 0;           ///< loops of unknown length, counted as one iteration
  failure error;                   ///< the reason for missing figures

  constexpr bool fits() const { return !error && peak_bytes <= memory; }
};

namespace report_detail {
/// Returns what `make` returns. An error thrown at run time is stored in `f`.
template <class Result, class F>
constexpr Result attempted(failure& f, const F& make) {
  if (std::is_constant_evaluated()) return make();
  try {
    return make();
  } catch (const error& e) {
    f.record(std::string_view(e.what()).substr(0, 4), std::string_view(e.what()).substr(5));
    return {};
  }
}
}  // namespace report_detail

/// A table of designs and schedules. The best row is the fastest one that fits, with collectives
/// beside kernels.
///
/// ```
/// pt::sweep table;
/// for (const auto& d : designs) table.add(step, "BP+Z3", pt::schedule(BP, Z3), d);
/// std::cout << table.print().view();
/// ```
class sweep {
 public:
  vec<sweep_row> rows;

  /// Adds a row. An error of the schedule on this design is stored in the row.
  template <class Schedule>
  constexpr void add(const program& p, std::string_view name, const Schedule& tactics,
                     const design& d, const partition_options& options = {}) {
    sweep_row row;
    row.design = d.name;
    row.schedule = name;
    row.devices = d.mesh.devices();
    row.memory = static_cast<std::int64_t>(d.on.device.memory);
    row.error.record(validate(d.on, d.mesh));
    if (!row.error) fill(row, p, tactics, d, options);
    rows.push_back(row);
  }
  /// The same for another kind of design; see pipeline_sweep.hpp.
  template <class Schedule, class Design>
  requires(!std::convertible_to<const Design&, const design&>) constexpr void add(
      const program& p, std::string_view name, const Schedule& tactics, const Design& d,
      const partition_options& options = {}) {
    sweep_row row;
    row.design = d.name;
    row.schedule = name;
    fill_row(row, p, tactics, d, options);
    rows.push_back(row);
  }
  /// The index of the best row, or -1 if none fits.
  constexpr int best() const {
    int found = -1;
    for (int i = 0; i < static_cast<int>(rows.size()); ++i)
      if (rows[i].fits() && (found < 0 || rows[i].overlapped < rows[found].overlapped)) found = i;
    return found;
  }
  /// Returns the rows as a table with aligned columns, and notes about loops of unknown length.
  constexpr text print() const {
    report_detail::columns table;
    const int first = best();
    for (const std::string_view head : {"design", "schedule", "devices", "in turn", "overlapped"})
      table.cell(head, head != "design" && head != "schedule");
    const bool piped = any_pipelined();
    if (piped) table.cell("bubble", true);
    for (const std::string_view head : {"MFU", "peak bytes", "bytes sent"}) table.cell(head, true);
    if (piped) table.cell("between meshes", true);
    table.cell("memory").end_row();
    for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
      const sweep_row& r = rows[i];
      table.cell(r.design).cell(r.schedule).number(r.devices);
      if (r.error) {
        for (int k = piped ? 0 : 2; k < 7; ++k) table.cell("-", true);
        table.cell(r.error.message).end_row();
        continue;
      }
      table.cell(time_text(r.time), true).cell(time_text(r.overlapped), true);
      text bubble = "-";
      if (r.pipelined) bubble = percent_text(r.bubble);
      if (piped) table.cell(bubble, true);
      table.cell(percent_text(r.mfu), true).number(r.peak_bytes).number(r.bytes_sent);
      if (piped) table.number(r.message_bytes);
      if (!r.fits())
        table.cell(concat("does not fit, ", r.peak_bytes - r.memory, " more bytes are needed"));
      else
        table.cell(i == first ? "fits, the fastest" : "fits");
      table.end_row();
    }
    text out;
    table.print(out);
    if (first < 0 && !rows.empty()) out << "nothing fits\n";
    int loops = 0;
    for (const auto& r : rows) loops = r.unknown_loops > loops ? r.unknown_loops : loops;
    if (loops > 0)
      out << "note: times and bytes sent count one iteration of " << loops
          << (loops == 1 ? " loop" : " loops") << " of unknown length\n";
    return out;
  }
  /// Returns the rows as CSV, with times in seconds.
  constexpr text csv() const {
    const bool piped = any_pipelined();
    text out = "design,schedule,devices,seconds,overlapped_seconds,mfu,";
    if (piped) out << "bubble,message_bytes,";
    out << "peak_bytes,bytes_sent,fits,unknown_loops,error\n";
    for (const auto& r : rows) {
      field(out, r.design);
      out << ',';
      field(out, r.schedule);
      out << ',' << r.devices;
      for (double v : {r.time, r.overlapped, r.mfu}) {
        out << ',';
        print_number(out, v);
      }
      if (piped) {
        print_number(out << ',', r.bubble);
        out << ',' << r.message_bytes;
      }
      out << ',' << r.peak_bytes << ',' << r.bytes_sent << ',' << (r.fits() ? 1 : 0) << ','
          << r.unknown_loops << ',';
      field(out, r.error.message);
      out << '\n';
    }
    return out;
  }

 private:
  constexpr bool any_pipelined() const {
    for (const auto& r : rows)
      if (r.pipelined) return true;
    return false;
  }
  static constexpr void field(text& out, std::string_view s) {
    out << '"';
    for (const char c : s) {
      if (c == '"') out << c;
      out << c;
    }
    out << '"';
  }
  template <class Schedule>
  static constexpr void fill(sweep_row& row, const program& p, const Schedule& tactics,
                             const design& d, partition_options options) {
    if (options.overlap.any()) options.overlap.options.on = d.on;
    const partitioned r = report_detail::attempted<partitioned>(
        row.error, [&] { return partition(p, d.mesh, tactics, options); });
    row.error.record(r.error);
    if (row.error) return;
    const simulation s = simulate(r.device, d.on);
    row.time = s.time;
    row.mfu = s.mfu();
    row.overlapped = simulate(r.device, d.on, {.overlap = true}).time;
    row.peak_bytes = r.cost.peak_bytes;
    row.bytes_sent = r.cost.collective_bytes;
    row.unknown_loops = r.cost.unknown.loops;
  }
};

}  // namespace partita
