/// What the passes over collectives did, as text for people.
#pragma once

#include <concepts>

#include <partita/schedule/partition.hpp>

namespace partita {

/// Per pass that is on: how much it changed, collectives and peak memory before and after. Where a
/// pass left the collectives as they were, they are shown once.
///
/// Cost: four lowerings, and one with what lets collectives run beside kernels.
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
