/// Closed formulas for the time that collectives take.
///
/// Source    alpha-beta model: Thakur, Rabenseifner, Gropp, Optimization of collective
///           communication operations in MPICH, 2005; a collective over several axes runs axis by
///           axis, as in Chan et al., Collective communication: theory, practice, and experience,
///           2007
#pragma once

#include <cstdint>

#include <partita/cost/device.hpp>
#include <partita/ir/collective.hpp>

namespace partita {

/// The time that a device spends in a collective, and the messages that it sends along each axis of
/// the program's mesh.
struct collective_work {
  double seconds = 0;
  std::int64_t messages[max_axes] = {};
};

namespace cost_detail {

class collective_timer {
 public:
  constexpr collective_timer(const collective& what, const mesh& m, const machine& on)
      : what_(what), part_(on.device.link_part) {
    for (const auto& e : what.axes) add_hops(on, m, e.axis, hops_);
    for (const auto& h : hops_) torus_ = torus_ && h.over.shape == link_shape::torus;
    torus_ = torus_ && hops_.count > 1;
  }
  /// Returns the work for an operand of `bytes` bytes on each device.
  constexpr collective_work operator()(double bytes) {
    switch (what_.kind) {
      case collective::all_gather:
        gather(bytes);
        break;
      case collective::all_reduce:
        gather(scatter(bytes));
        break;
      case collective::reduce_scatter:
        scatter(bytes);
        break;
      case collective::all_to_all:
        exchange(bytes);
        break;
      case collective::permute:
        permute(bytes);
        break;
      case collective::all_slice:
        break;
    }
    if (torus_) work_.seconds = latency_ + sent_ / (together() * part_);
    return work_;
  }

 private:
  const collective& what_;
  double part_;
  hop_list hops_;
  bool torus_ = true;
  collective_work work_;
  double sent_ = 0, latency_ = 0;

  constexpr double together() const {
    double sum = 0;
    for (const auto& h : hops_) sum += h.over.bandwidth;
    return sum;
  }
  constexpr void send(const hop& h, double bytes, std::int64_t messages) {
    const double wait = static_cast<double>(messages) * h.over.latency;
    work_.seconds += wait + bytes / (h.over.bandwidth * part_);
    work_.messages[h.axis] += messages;
    latency_ += wait;
    sent_ += bytes;
  }
  /// Gathers over the far links first, while shards are small.
  constexpr void gather(double bytes) {
    for (const auto& h : hops_) {
      const double n = static_cast<double>(h.members);
      send(h, (n - 1) * bytes, h.members - 1);
      bytes *= n;
    }
  }
  /// Scatters over the far links last. Returns the bytes of a shard.
  constexpr double scatter(double bytes) {
    for (int i = hops_.count; i-- > 0;) {
      const hop& h = hops_.hops[i];
      const double n = static_cast<double>(h.members);
      send(h, (n - 1) / n * bytes, h.members - 1);
      bytes /= n;
    }
    return bytes;
  }
  /// Sends to every other member. In a ring, a message passes a quarter of the members on average.
  constexpr void exchange(double bytes) {
    for (const auto& h : hops_) {
      const double n = static_cast<double>(h.members), direct = (n - 1) / n * bytes,
                   passed = h.over.shape == link_shape::switched ? 0 : n / 4 * bytes;
      send(h, direct > passed ? direct : passed, h.members - 1);
    }
  }
  /// Sends over as many links of a ring as the shift is long. A permute over several axes takes the
  /// time of the slowest one.
  constexpr void permute(double bytes) {
    const hop* slowest = nullptr;
    for (const auto& h : hops_)
      if (slowest == nullptr || h.over.bandwidth < slowest->over.bandwidth) slowest = &h;
    if (slowest == nullptr) return;
    const std::int64_t n = slowest->members,
                       shift = what_.map.shift < 0 ? -what_.map.shift : what_.map.shift;
    double far = 1;
    if (slowest->over.shape != link_shape::switched && hops_.count == 1)
      far = static_cast<double>(
          what_.map.form == device_map::mirrored || what_.map.form == device_map::renumbered ? n - 1
          : what_.map.form == device_map::ring && 2 * shift > n ? n - shift
                                                                : shift);
    send(*slowest, (far < 1 ? 1 : far) * bytes, 1);
    torus_ = false;
  }
};

}  // namespace cost_detail

/// Returns the time of a collective whose operand has `bytes` bytes on each device, and the
/// messages that each device sends. An all-reduce is a reduce-scatter and an all-gather. The axes
/// of `m`, the program's mesh, may be split.
///
/// Cost      linear in the axes of the collective
constexpr collective_work time_of(const collective& what, std::int64_t bytes, const mesh& m,
                                  const machine& on) {
  return cost_detail::collective_timer(what, m, on)(static_cast<double>(bytes));
}

}  // namespace partita
