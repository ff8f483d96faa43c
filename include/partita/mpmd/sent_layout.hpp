/// Chooses the side of a transfer on which a value is gathered.
#pragma once

#include <cstdint>

#include <partita/core/core_program.hpp>
#include <partita/cost/collective_time.hpp>
#include <partita/cost/staged_work.hpp>
#include <partita/mpmd/union_mesh.hpp>

namespace partita::mpmd_detail {

/// The cost of sending and gathering a value: seconds on the devices of the meshes, or bytes over
/// equal links if one of them is unknown.
///
/// As in `simulate`, all devices of a mesh send at the same time, and a message has the bytes of a
/// shard, of the larger one of both sides.
class transfer_cost {
 public:
  constexpr transfer_cost(const core_program& core, const topology& t)
      : t_(t), known_(devices_known(core, t)) {
    for (int m = 0; m < t.count(); ++m) meshes_.push_back(sized(core, m));
  }
  /// The cost of sending a value with this layout, by axis names, on both sides.
  constexpr double send(const tensor_type& whole, const layout& l, int from, int to) const {
    const double a = piece(whole, l, from), b = piece(whole, l, to), bytes = a > b ? a : b;
    return known_ ? message_seconds(t_[from].device, bytes) : bytes;
  }
  /// The cost of gathering from one layout to another that has the first of its axes along each
  /// dimension.
  constexpr double gather(const tensor_type& whole, const layout& have, const layout& want,
                          int mesh) const {
    const partita::mesh& m = meshes_[mesh];
    collective c;
    for (const auto& e : have)
      if (want.dim_of(e.axis) < 0 && m.size(e.axis) > 1) c.axes.push_back(e.axis, e.dim);
    if (c.axes.count == 0) return 0;
    const auto bytes = static_cast<std::int64_t>(piece(whole, have, mesh));
    if (known_) return time_of(c, bytes, m, machine(t_[mesh].device)).seconds;
    return static_cast<double>(bytes_sent(c.kind, c.members(m), bytes));
  }

 private:
  const topology& t_;
  bool known_;
  vec<partita::mesh> meshes_;  ///< with axes numbered as in layouts

  static constexpr partita::mesh sized(const core_program& core, int mesh) {
    partita::mesh m = core.mesh;
    const uneven_axes& sizes = core.uneven_sizes();
    for (int a = 0; a < m.rank; ++a)
      if (sizes.contains(a)) m.axes[a].size = sizes.sizes[(1 + mesh) * max_axes + a];
    return m;
  }
  static constexpr bool has_link(const device& d) {
    return d.near.bandwidth > 0 || d.far.bandwidth > 0;
  }
  static constexpr bool devices_known(const core_program& core, const topology& t) {
    for (int m = 0; m < t.count(); ++m)
      if (!t[m].has_device || !has_link(t[m].device) ||
          validate(machine(t[m].device), sized(core, m)))
        return false;
    return true;
  }
  constexpr double piece(const tensor_type& whole, const layout& l, int mesh) const {
    double bytes = static_cast<double>(whole.bytes());
    for (const auto& e : l) bytes /= static_cast<double>(meshes_[mesh].size(e.axis));
    return bytes;
  }
};

}  // namespace partita::mpmd_detail
