/// Memory contents of a pipeline's meshes at their peaks, as text.
#pragma once

#include <cstdint>

#include <partita/mpmd/pipeline_memory.hpp>
#include <partita/mpmd/print_mpmd.hpp>
#include <partita/report/columns.hpp>
#include <partita/report/simulation.hpp>

namespace partita {

namespace report_detail {

class pipeline_peaks {
 public:
  constexpr pipeline_peaks(const pipelined& p, int most)
      : p_(p), most_(most), names_(p.source), of_slot_(p.values().types.size(), -1) {
    for (value_id v = 0; v < p.source.value_count(); ++v) of_slot_[p.slot_of[v]] = v;
  }

  constexpr text print(const vec<mesh_peak>& peaks) const {
    text out;
    for (int m = 0; m < static_cast<int>(peaks.size()); ++m) print(out, m, peaks[m]);
    return out;
  }

 private:
  const pipelined& p_;
  int most_;
  value_names names_;
  vec<value_id> of_slot_;  ///< a value of the source, or -1

  constexpr void print(text& out, int m, const mesh_peak& peak) const {
    out << name_text(p_.topology.name(m)) << ": ";
    print_figure(out, peak.memory.peak);
    out << " bytes";
    if (const int c = peak.memory.call; c >= 0) out << " while " << p_.text_of(c) << " runs";
    out << '\n';
    kinds(out, peak);
    largest(out, m, peak);
  }
  constexpr void kinds(text& out, const mesh_peak& peak) const {
    std::int64_t of[held_kinds] = {};
    for (const held_memory& h : peak.held) of[static_cast<int>(h.kind)] += h.bytes;
    columns rows;
    const auto line = [&](std::string_view name, std::int64_t bytes) {
      if (bytes > 0)
        rows.cell(name)
            .number(bytes, " bytes")
            .cell(percent_text(static_cast<double>(bytes) / static_cast<double>(peak.memory.peak)),
                  true)
            .end_row();
    };
    for (int k = 0; k < held_kinds; ++k) line(name_of(static_cast<held_kind>(k)), of[k]);
    line("the call itself", peak.running);
    rows.print(out, "  ");
  }
  constexpr void largest(text& out, int m, const mesh_peak& peak) const {
    columns rows;
    int shown = 0;
    for (const held_memory& h : peak.held) {
      if (shown++ == most_) break;
      text many;
      if (h.count > 1) many << 'x' << h.count;
      rows.number(h.bytes, " bytes")
          .cell(many)
          .cell(name(h.slot))
          .cell(concat(p_.values().type(h.slot)))
          .cell(name_of(h.kind))
          .end_row();
    }
    if (peak.held.empty()) return;
    out << "  largest values on a device of " << p_.topology.mesh_of(m) << ":\n";
    rows.print(out, "    ");
  }
  constexpr text name(value_id slot) const {
    const value_id v = of_slot_[slot];
    if (v < 0) return concat("%v", slot);
    return concat('%', names_[v]);
  }
};

}  // namespace report_detail

/// Prints for each mesh the memory at its peak: the call that runs then, bytes by the reason they
/// are kept, and the `most` largest values with the number of microbatches kept and the global
/// type.
///
/// Errors    those of the pipeline, as the text "error: " and the message
constexpr text print_peak(const pipelined& p, const timeline& t, int most = 10) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return report_detail::pipeline_peaks(p, most).print(peaks_of(p, t));
}
/// The same, assuming that all calls take equally long.
constexpr text print_peak(const pipelined& p, int most = 10) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return report_detail::pipeline_peaks(p, most).print(peaks_of(p));
}

}  // namespace partita
