/// The loops over located factors: one iteration as a program.
#pragma once

#include <cstdint>

#include <partita/core/loops.hpp>
#include <partita/ir/locate.hpp>
#include <partita/op/registry.hpp>

namespace partita {

/// The loops of an op over one located factor, major to minor.
struct located_loops {
  located_piece piece;
  axis_list axes;
};

/// The work of one iteration. Its inputs are the pieces of the operands, followed by the offsets of
/// pieces.
struct located_work {
  program p;
  vec<located_start> starts;
};

/// Calls an op's `locate` function. `operands` and `results` are the types of the pieces.
///
/// Errors    in program::error: the errors of the ops that it appends
constexpr located_work locate(const op_def& def, const factor_table& map, int row,
                              span<const tensor_type> operands, span<const tensor_type> results,
                              span<const std::int64_t> attrs, span<const located_piece> pieces) {
  builder b;
  vec<value_id> given;
  for (const tensor_type& t : operands)
    given.push_back(b.emit(partita::def<op::parameter>, {}, {}, t));
  locate_context c(b, def, partita::def<op::parameter>, map, row, given, attrs, pieces, results);
  def.locate(c);
  located_work work;
  for (value_id v : given) b.p.inputs.push_back(v);
  for (const located_start& each : c.starts) b.p.inputs.push_back(each.input);
  for (value_id v : c.results)
    if (v >= 0) b.p.outputs.push_back({v, {}});
  work.starts = static_cast<vec<located_start>&&>(c.starts);
  work.p = static_cast<program&&>(b.p);
  return work;
}

}  // namespace partita
