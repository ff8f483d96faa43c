/// What if: a program under schedules on several systems.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/cost/design.hpp>
#include <partita/cost/simulate.hpp>
#include <partita/report/columns.hpp>
#include <partita/report/simulation.hpp>
#include <partita/schedule/partition.hpp>

namespace partita {

/// What a schedule costs on a design.
struct sweep_row {
  text design, schedule;
  std::int64_t devices = 0, peak_bytes = 0, memory = 0, bytes_sent = 0;
  double time = 0;        ///< seconds of a step, one thing after the other
  double overlapped = 0;  ///< where collectives run beside kernels
  double mfu = 0;
  failure error;  ///< why there is nothing to compare

  constexpr bool fits() const { return !error && peak_bytes <= memory; }
};

/// Designs and schedules side by side; the best is the fastest that fits, collectives beside
/// kernels.
///
/// ```
/// pt::sweep table;
/// for (const auto& d : designs) table.add(step, "BP+Z3", pt::schedule(BP, Z3), d);
/// std::cout << table.print().view();
/// ```
class sweep {
 public:
  vec<sweep_row> rows;

  /// A mistake of the schedule on this design is the row's.
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
  /// The number of the best row, or -1 if none fits.
  constexpr int best() const {
    int found = -1;
    for (int i = 0; i < static_cast<int>(rows.size()); ++i)
      if (rows[i].fits() && (found < 0 || rows[i].overlapped < rows[found].overlapped)) found = i;
    return found;
  }
  constexpr text print() const {
    report_detail::columns table;
    const int first = best();
    for (const std::string_view head :
         {"design", "schedule", "devices", "time", "overlapped", "MFU", "peak bytes", "bytes sent"})
      table.cell(head, head != "design" && head != "schedule");
    table.cell("memory").end_row();
    for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
      const sweep_row& r = rows[i];
      table.cell(r.design).cell(r.schedule).number(r.devices);
      if (r.error) {
        for (int k = 0; k < 5; ++k) table.cell("-", true);
        table.cell(r.error.message).end_row();
        continue;
      }
      table.cell(time_text(r.time), true).cell(time_text(r.overlapped), true);
      table.cell(percent_text(r.mfu), true).number(r.peak_bytes).number(r.bytes_sent);
      if (!r.fits())
        table.cell(concat("does not fit, ", r.peak_bytes - r.memory, " bytes are missing"));
      else
        table.cell(i == first ? "fits, the fastest" : "fits");
      table.end_row();
    }
    text out;
    table.print(out);
    if (first < 0 && !rows.empty()) out << "nothing fits\n";
    return out;
  }
  /// Times in seconds.
  constexpr text csv() const {
    text out =
        "design,schedule,devices,seconds,overlapped_seconds,mfu,peak_bytes,bytes_sent,fits,error\n";
    for (const auto& r : rows) {
      field(out, r.design);
      out << ',';
      field(out, r.schedule);
      out << ',' << r.devices;
      for (double v : {r.time, r.overlapped, r.mfu}) {
        out << ',';
        print_number(out, v);
      }
      out << ',' << r.peak_bytes << ',' << r.bytes_sent << ',' << (r.fits() ? 1 : 0) << ',';
      field(out, r.error.message);
      out << '\n';
    }
    return out;
  }

 private:
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
    const partitioned r = attempt(row, [&] { return partition(p, d.mesh, tactics, options); });
    row.error.record(r.error);
    if (row.error) return;
    const simulation s = simulate(r.device, d.on);
    row.time = s.time;
    row.mfu = s.mfu();
    row.overlapped = simulate(r.device, d.on, {.overlap = true}).time;
    row.peak_bytes = r.cost.peak_bytes;
    row.bytes_sent = r.cost.collective_bytes;
  }
  /// At run time a mistake is thrown.
  template <class F>
  static constexpr partitioned attempt(sweep_row& row, const F& f) {
    if (std::is_constant_evaluated()) return f();
    try {
      return f();
    } catch (const error& e) {
      row.error.record(std::string_view(e.what()).substr(0, 4),
                       std::string_view(e.what()).substr(5));
      return {};
    }
  }
};

}  // namespace partita
