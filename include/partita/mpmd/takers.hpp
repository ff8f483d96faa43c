/// Visits the values that the units of a pipeline use.
#pragma once

#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/pipelined.hpp>

namespace partita::mpmd_detail {

/// Calls `f(value, unit)` for each operand of a unit. For a slice of an iteration's input, also for
/// that input, because the user makes the slice.
template <class F>
constexpr void for_each_taker(const pipelined& p, const F& f) {
  for (int u = 0; u < static_cast<int>(p.units.size()); ++u)
    for (const value_id v : p.units[u].piece.inputs) {
      f(v, u);
      const op_id o = p.source.producer(v);
      if (enters(p.source.op(o)) && p.source.op(o).operand_count > 0) f(p.source.operand(o, 0), u);
    }
}

}  // namespace partita::mpmd_detail
