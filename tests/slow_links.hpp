/// A machine for tests of overlapped collectives.
#pragma once

#include <partita/cost/device.hpp>

namespace data {

namespace pt = partita;

/// Products take time; memory and the start of a kernel take none; a device sends `bandwidth` bytes
/// a second.
constexpr pt::machine slow_links(double bandwidth) {
  pt::device d;
  d.memory = d.bandwidth = 1e15;
  d.f32 = 1e9;
  d.vector = 1e12;
  d.tile = 1;
  d.near = {pt::link_shape::switched, bandwidth, 0};
  return d.named("slow links");
}

}  // namespace data
