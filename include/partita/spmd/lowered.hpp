/// What a lowering is asked for, and what it gives: the device-local program, and where each of its
/// collectives comes from.
#pragma once

#include <cstdint>

#include <partita/ir/collective.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/spmd/run_passes.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Why a collective is there.
enum class collective_reason : std::uint8_t {
  sum_finished,   ///< a loop reduced its results
  use_needs_it,   ///< an op needs the operand in another layout than it was made in
  halo,           ///< a loop sees elements of the neighbouring pieces
  mirrored,       ///< a loop sees the piece at the opposite place
  moved_instead,  ///< the op's other operand is larger, and stays where it is
  goes_around,    ///< pieces pass by the products that need them, see ring.hpp
  again,          ///< what an op makes of pieces it reduces once more
  carry,          ///< a piece lacks the totals of those before it
  taken,          ///< a slice takes elements of few pieces, of those who have them
  looked_up,      ///< indices come to the rows of a table, and what they look up goes back
  given,          ///< those to whom the op's result is given take it in another layout
  whole_needed    ///< an op has no loop over the axis (or `any`) and needs the operand whole
};

/// One collective of the lowered program, and where it comes from. Of all_reduces that were
/// combined into one it tells of the first, but for the bytes, which are those of all.
struct collective_note {
  collective::kind_type kind = collective::all_gather;
  collective_reason reason = collective_reason::use_needs_it;
  value_id value = -1;     ///< in the core program
  op_id op = -1;           ///< the op that asked for it (for a sum: the op that made it)
  int tactic = 0;          ///< the last tactic that had a part in it
  std::int64_t bytes = 0;  ///< of its operand on one device
  std::int64_t times = 1;  ///< how often it runs: the trip counts of the loops around it
  axis_set axes;           ///< that it communicates along, of the program's mesh

  /// By one device, each time it runs.
  constexpr std::int64_t bytes_sent(const mesh& m) const {
    std::int64_t members = 1;
    for (int a = 0; a < m.rank; ++a)
      if (axes.contains(a)) members *= m.size(a);
    return partita::bytes_sent(kind, members, bytes);
  }
};

/// How many collectives of each kind stand in the text of a program: each once, however often the
/// loops around it run.
constexpr collectives as_written(const vec<collective_note>& notes) {
  collectives counts;
  for (const auto& each : notes) counts.count(each.kind);
  return counts;
}

struct lowering_options {
  /// Fuses slices with gathers and reductions, and makes argument and result types local. Without
  /// it the mechanical lowering of section 6.1 is shown.
  bool fuse = true;
  /// Those of section 6.1 and those that rewrite the program; with `fuse`.
  partita::passes passes = {};
};

/// How often the passes that are part of the lowering applied, in the text of the program.
struct fusion_counts {
  int cancelled = 0, all_to_alls = 0, reduce_scatters = 0;
};

struct lowered {
  device_program device;
  vec<collective_note> notes;  ///< of the collectives, in the order of the text
  collectives counts;
  fusion_counts fused;
  vec<pass_report> passes;  ///< of those that rewrote the program
  failure error;
};

namespace spmd_detail {

/// The notes of a program that a pass has rewritten.
constexpr vec<collective_note> renumbered(const vec<collective_note>& notes,
                                          const renumbering& moved) {
  vec<std::int64_t> bytes;
  for (const auto& each : notes) bytes.push_back(each.bytes);
  for (std::size_t i = 0; i < notes.size(); ++i)
    if (std::int64_t* sum = moved.joined[i] >= 0 ? &bytes[moved.joined[i]] : nullptr)
      *sum = saturating_add(*sum, notes[i].bytes);
  vec<collective_note> list;
  list.reserve(moved.order.size());
  for (int number : moved.order) {
    list.push_back(notes[number]);
    list.back().bytes = bytes[number];
  }
  return list;
}

}  // namespace spmd_detail

}  // namespace partita
