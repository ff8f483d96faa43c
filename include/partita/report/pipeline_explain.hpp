/// Reasons for the collectives and transfers of a pipeline, locations of its values, and values
/// replicated by default, as text.
#pragma once

#include <concepts>
#include <string_view>

#include <partita/mpmd/replicated_on_meshes.hpp>
#include <partita/report/explain.hpp>
#include <partita/report/pipeline_explainer.hpp>

namespace partita {

/// Prints one line for each collective of a pipeline's functions: mesh, function, kind and axes,
/// value, bytes that a device sends, the number of runs in a step, the last tactic that changed it,
/// and the reason. Then come the transfers between meshes with the bytes of their global values,
/// layouts and receivers. Then, for each mesh, the number of runs of each kind and the bytes that a
/// device sends. Notes come last: removed dead code, and loops of unknown length, counted as one
/// iteration.
///
/// Errors    those of the pipeline, as the text "error: " and the message
constexpr text explain(const pipelined& p) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return report_detail::pipeline_explainer(p).all();
}
/// Describes the inputs and outputs that a name or pattern selects, or the value that is printed
/// with this name: the stage and mesh that compute it, its layout, its users, its transfers and its
/// collectives.
///
/// Errors    O149 no value matches; those of the pipeline. Both are the text "error: " and the
///           message
constexpr text explain(const pipelined& p, std::string_view name) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return report_detail::pipeline_explainer(p).of(name);
}

namespace report_detail {
template <auto Thunk>
struct explained_pipeline {
  constexpr text operator()() const { return explain(Thunk()); }
};
}  // namespace report_detail

/// The same text for the pipeline that `Thunk` returns, computed at compile time.
template <auto Thunk>
requires std::same_as<decltype(Thunk()), pipelined>
constexpr std::string_view explain() {
  return report_detail::kept_text<report_detail::explained_pipeline<Thunk>>();
}

/// Prints the values that the meshes of a pipeline replicate by default (see replicated_on_mesh),
/// largest first: bytes on one device times copies, the value, its op and type, the mesh and its
/// axes. At most `limit` lines; the rest is counted and summed.
constexpr text print_replicated(const pipelined& p, int limit = 20) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return report_detail::replicated_text(
      p.core, p.source, replicated_by_default(p), limit, [&](const replicated_on_mesh& v) {
        return concat("on ", name_text(p.topology.name(v.mesh)), ' ');
      });
}

}  // namespace partita
