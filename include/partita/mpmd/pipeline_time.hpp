/// Times of a pipeline's calls on devices: units are simulated, messages use the links between
/// nodes.
#pragma once

#include <partita/cost/simulate.hpp>
#include <partita/cost/staged_work.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/mpmd/timeline.hpp>

namespace partita {

/// The result of simulating a pipeline.
struct pipeline_time {
  timeline times;        ///< seconds; see timeline::bubble_of_total and the others
  mesh_lists lists;      ///< of the pipeline, messages with their seconds
  vec<double> seconds;   ///< by unit: one call
  vec<double> products;  ///< by unit: seconds of one call's products at the device's peak
  vec<double> useful;    ///< by unit: those of products that are not recomputed
  double mfu = 0;        ///< products of the model at the peak, relative to the time of all devices
  double hfu = 0;        ///< the same for all computed products
  failure error;         ///< D001, D002, O007
};

namespace mpmd_detail {

/// The share of `total` seconds, over all devices, in which they run calls. `seconds` is by unit.
constexpr double utilization(const pipelined& p, const vec<double>& seconds, double total) {
  double busy = 0, devices = 0;
  for (std::size_t u = 0; u < p.units.size(); ++u) {
    const pipeline_unit& unit = p.units[u];
    const double calls = unit.inside ? p.microbatches : 1;
    busy += calls * seconds[u] * static_cast<double>(p.topology.mesh_of(unit.piece.mesh).devices());
  }
  for (int m = 0; m < p.topology.count(); ++m)
    devices += static_cast<double>(p.topology.mesh_of(m).devices());
  return total > 0 ? busy / (devices * total) : 0;
}

}  // namespace mpmd_detail

/// Simulates each unit once and plays its calls, on the devices that the topology states, or on
/// `on`. Without sharding, a mesh counts as one device. All devices of a mesh send at the same
/// time. A message has the bytes of a shard (of the larger one if both meshes shard it
/// differently). It uses the sender's link beyond the node, or the near one for devices without
/// nodes, and has its latency.
///
/// Cost      linear in the ops of units, then in calls and messages
/// Errors    D001 a figure of a device is missing, D002 a sending device has no link; O007 deadlock
constexpr pipeline_time simulate(const pipelined& p, const device& on,
                                 const simulation_options& options = {}) {
  pipeline_time out;
  const auto device_of = [&](int mesh) -> const device& {
    return p.topology[mesh].has_device ? p.topology[mesh].device : on;
  };
  out.error = p.error;
  for (const auto& u : p.units) {
    if (out.error) return out;
    const simulation s = simulate(u.device, machine(device_of(u.piece.mesh)), options);
    out.error.record(s.error);
    out.seconds.push_back(s.time);
    out.products.push_back(s.ideal);
    out.useful.push_back(s.model_ideal);
  }
  out.lists = p.lists;
  for (message& m : out.lists.messages) {
    const transfer& t = p.transfers[m.transfer];
    const device& d = device_of(t.from);
    const transfer_layout& l = p.sent_as[m.transfer];
    const tensor_type& whole = p.values().type(p.slot_of[t.value]);
    const auto piece = [&](const layout& lies, int mesh) {
      return tensor_type{whole.element, lies.local(whole.shape, p.meshes[mesh])}.bytes();
    };
    const std::int64_t sent = piece(l.from, t.from), taken = piece(l.to, t.to);
    if (!(d.far.bandwidth > 0 || d.near.bandwidth > 0))
      out.error.record("D002", "device \"", d.name(),
                       "\": it sends to other meshes and has no link; give it one beyond the node");
    if (out.error) return out;
    m.seconds = message_seconds(d, static_cast<double>(sent > taken ? sent : taken));
    m.latency = message_latency(d);
  }
  out.times = play(
      p.calls, out.lists, [&](int c) { return out.seconds[p.unit_of[c]]; }, p.channels);
  out.error.record(out.times.error);
  if (out.error) return out;
  out.mfu = mpmd_detail::utilization(p, out.useful, out.times.total);
  out.hfu = mpmd_detail::utilization(p, out.products, out.times.total);
  return out;
}

}  // namespace partita
