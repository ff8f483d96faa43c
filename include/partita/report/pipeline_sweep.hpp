/// Pipelines on several systems of meshes, in the same table as programs on one mesh.
#pragma once

#include <partita/mpmd/cluster_design.hpp>
#include <partita/mpmd/pipeline_figures.hpp>
#include <partita/mpmd/pipeline_time.hpp>
#include <partita/report/pipeline_sent.hpp>
#include <partita/report/sweep.hpp>

namespace partita {

namespace report_detail {

/// The same meshes with unlimited memory, so that missing memory is reported as a figure instead of
/// an error.
constexpr topology without_limits(const cluster_design& d) {
  topology t;
  for (int m = 0; m < d.cluster.count(); ++m) {
    named_mesh each = d.cluster[m];
    each.device = d.device_of(m);
    each.has_device = true;
    if (each.device.memory > 0) each.device.memory = 1e18;
    t.push_back(each);
  }
  return t;
}
/// Records the memory of the mesh with the least memory left, and the peak there.
constexpr void add_memory(sweep_row& row, const pipeline_figures& f, const cluster_design& d) {
  for (int m = 0; m < d.cluster.count(); ++m) {
    const std::int64_t peak = f.meshes[m].memory.peak;
    const auto memory = static_cast<std::int64_t>(d.device_of(m).memory);
    if (m > 0 && memory - peak >= row.memory - row.peak_bytes) continue;
    row.memory = memory;
    row.peak_bytes = peak;
  }
}
/// The number of bytes sent by a device of the mesh whose devices send the most.
constexpr std::int64_t most_sent(const pipelined& p) {
  std::int64_t most = 0;
  for (const auto& sent : sent_by_mesh(p))
    if (const std::int64_t all = sent.total(); all > most) most = all;
  return most;
}
}  // namespace report_detail

/// Fills the row of a pipelined schedule on several meshes, for `sweep::add(p, name, tactics,
/// design)`. The memory is that of the mesh with the least memory left. (The schedule sets
/// microbatches and order; pipeline_change varies them.)
///
/// Errors    in the row: those of partition() on the topology and of simulate()
template <class Schedule>
constexpr void fill_row(sweep_row& row, const program& p, const Schedule& tactics,
                        const cluster_design& d, partition_options options) {
  row.pipelined = true;
  if (options.overlap.any()) options.overlap.options.on = d.device_of(0);
  row.devices = d.devices();
  const pipelined r = report_detail::attempted<pipelined>(
      row.error, [&] { return partition(p, report_detail::without_limits(d), tactics, options); });
  row.error.record(r.error);
  if (row.error) return;
  const pipeline_time t = simulate(r, d.on);
  row.error.record(t.error);
  if (row.error) return;
  const pipeline_figures figures(r);
  row.time = t.times.total;
  row.overlapped = simulate(r, d.on, {.overlap = true}).times.total;
  row.bubble = t.times.bubble_of_total();
  row.mfu = t.mfu;
  row.bytes_sent = report_detail::most_sent(r);
  row.message_bytes = figures.message_bytes;
  row.unknown_loops = figures.unknown.loops;
  report_detail::add_memory(row, figures, d);
}

}  // namespace partita
