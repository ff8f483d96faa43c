/// Describes units of a pipeline in messages.
#pragma once

#include <partita/mpmd/pipelined.hpp>

namespace partita::mpmd_detail {

/// The kind of a unit: `forward of stage 1`.
constexpr text unit_kind(const pipeline_unit& u) {
  text out = u.joined != 0                     ? "merged call"
             : !u.inside                       ? "call outside of the loop"
             : u.part == fragment_part::weight ? "gradients of weights"
             : u.transposed == 0               ? "forward"
                                               : "backward";
  if (u.piece.stage >= 0) out << " of stage " << u.piece.stage;
  return out;
}
/// The kind of a unit and its parts: `forward of stage 1 ("layer2", "head")`.
constexpr text unit_text(const pipeline_unit& u) {
  text out = unit_kind(u);
  constexpr int most = 3;
  const int count = static_cast<int>(u.piece.origins.size());
  if (count > 0) out << " (";
  for (int i = 0; i < count && i < most; ++i) {
    out << (i > 0 ? ", " : "") << '"' << u.piece.origins[i].name << '"';
    if (u.piece.origins[i].transposed > 0) out << '(' << u.piece.origins[i].transposed << ')';
  }
  if (count > most) out << ", and " << count - most << " more";
  if (count > 0) out << ')';
  return out;
}

}  // namespace partita::mpmd_detail
