/// Bytes that devices of a pipeline's meshes send in collectives.
#pragma once

#include <cstddef>
#include <cstdint>

#include <partita/mpmd/pipelined.hpp>
#include <partita/schedule/explainer.hpp>

namespace partita::report_detail {

/// The number of times that a unit's function runs in a step.
constexpr std::int64_t calls_of(const pipelined& p, const pipeline_unit& u) {
  return u.inside ? p.microbatches : 1;
}
/// The bytes that one device of each mesh sends in a step, by kind of collective.
///
/// Cost      linear in the ops of units
constexpr vec<schedule_detail::bytes_by_kind> sent_by_mesh(const pipelined& p) {
  vec<schedule_detail::bytes_by_kind> sent(static_cast<std::size_t>(p.topology.count()),
                                           schedule_detail::bytes_by_kind());
  for (const auto& u : p.units) {
    std::size_t next = 0;
    const auto once = schedule_detail::sent_by_kind(u.device.local, u.device.mesh, u.notes, next);
    for (int k = 0; k < schedule_detail::kind_count; ++k) {
      std::int64_t& of = sent[u.piece.mesh].of[k];
      of = saturating_add(of, saturating_multiply(once.of[k], calls_of(p, u)));
    }
  }
  return sent;
}

}  // namespace partita::report_detail
