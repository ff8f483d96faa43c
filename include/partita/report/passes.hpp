/// Effects of the passes over collectives, as text.
#pragma once

#include <concepts>

#include <partita/schedule/partition.hpp>

namespace partita {

/// Prints for each pass that is on: the number of changes, and collectives and peak memory before
/// and after. If the collectives did not change, they are printed once.
///
/// Cost      four lowerings, and one more if collectives overlap with kernels
template <std::same_as<partitioned> Partitioned>
constexpr text report_passes(const Partitioned& p) {
  text out;
  vec<pass_report> list = pass_reports(p.core, p.passes);
  if (p.overlap.any()) {
    lowered l = lower(p.core, {.passes = p.passes});
    l.passes.clear();
    p.overlap.apply(l);
    for (const auto& each : l.passes) list.push_back(each);
  }
  for (const auto& each : list) {
    out << each.name << ": " << each.changed << " changed\n  collectives: " << each.before;
    if (!(each.before == each.after)) out << "\n           -> : " << each.after;
    out << "\n  peak: " << each.peak_before << " -> " << each.peak_after << " bytes per device\n";
  }
  return out;
}

}  // namespace partita
