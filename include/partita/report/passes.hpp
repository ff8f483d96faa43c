/// Effects of the passes over collectives, as text.
#pragma once

#include <concepts>

#include <partita/schedule/partition.hpp>

namespace partita {

namespace report_detail {

/// Reports the effect of each pass that is on, in order. The program is lowered again for each pass
/// that is part of the lowering.
constexpr vec<pass_report> pass_reports(const core_program& c, const passes& options) {
  vec<pass_report> list;
  lowering_options step;
  step.passes = {.cancel = false,
                 .to_all_to_all = false,
                 .to_reduce_scatter = false,
                 .stationary_rows = options.stationary_rows,
                 .combine_below = 0,
                 .share_gathers = false};
  lowered now = lower(c, step);
  const auto add = [&](std::string_view name, int fusion_counts::*changed) {
    pass_report r;
    r.name = name;
    r.before = now.counts;
    r.written_before = as_written(now.notes);
    r.peak_before = live_bytes(now.device.local).peak();
    now = lower(c, step);
    r.changed = now.fused.*changed;
    r.after = now.counts;
    r.written_after = as_written(now.notes);
    r.peak_after = live_bytes(now.device.local).peak();
    list.push_back(r);
  };
  if ((step.passes.cancel = options.cancel)) add("cancel", &fusion_counts::cancelled);
  if ((step.passes.to_all_to_all = options.to_all_to_all))
    add("to_all_to_all", &fusion_counts::all_to_alls);
  if ((step.passes.to_reduce_scatter = options.to_reduce_scatter))
    add("to_reduce_scatter", &fusion_counts::reduce_scatters);
  for (const auto& each : lower(c, {.passes = options}).passes) list.push_back(each);
  return list;
}

}  // namespace report_detail

/// Prints for each pass that is on: the number of changes, and collectives and peak memory before
/// and after. If the collectives did not change, they are printed once.
///
/// Cost      four lowerings, and one more if collectives overlap with kernels
template <std::same_as<partitioned> Partitioned>
constexpr text report_passes(const Partitioned& p) {
  text out;
  vec<pass_report> list = report_detail::pass_reports(p.core, p.passes);
  if (p.overlap.any()) {
    lowered l = lower(p.core, {.passes = p.passes});
    l.passes.clear();
    p.overlap.apply(l);
    for (const auto& each : l.passes) list.push_back(each);
  }
  for (const auto& each : list) {
    out << each.name << ": " << each.changed << " changed\n  collectives: " << each.before;
    if (!(each.before == each.after)) out << "\n           -> : " << each.after;
    if (each.name == "combine")
      out << "\n  launched: " << each.launched_before << " -> " << each.launched_after << '\n';
    else
      out << "\n  peak: " << each.peak_before << " -> " << each.peak_after << " bytes per device\n";
  }
  return out;
}

}  // namespace partita
