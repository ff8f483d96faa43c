/// Why collectives and transfers of a pipeline are there, and what it replicates by default, as
/// text for people.
#pragma once

#include <partita/mpmd/replicated_on_meshes.hpp>
#include <partita/report/explain.hpp>

namespace partita {

/// What the meshes of a pipeline replicate by default (see replicated_on_mesh), largest first:
/// bytes on one device times copies, the value, its op and type, the mesh and its axes. At most
/// `limit` lines; the rest is counted and summed.
constexpr text print_replicated(const pipelined& p, int limit = 20) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return report_detail::replicated_text(
      p.core, p.source, replicated_by_default(p), limit, [&](const replicated_on_mesh& v) {
        return concat("on ", name_text(p.topology.name(v.mesh)), ' ');
      });
}

}  // namespace partita
