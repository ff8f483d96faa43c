/// Options and result of the lowering: the device-local program, and the origin of each of its
/// collectives.
#pragma once

#include <cstdint>

#include <partita/ir/collective.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/spmd/run_passes.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The reason for a collective.
enum class collective_reason : std::uint8_t {
  sum_finished,       ///< a loop reduced its results
  use_needs_it,       ///< an op needs the operand in another layout than its producer gives it
  halo,               ///< a loop reads elements of neighbouring shards
  mirrored,           ///< a loop reads the shard at the mirrored position
  moved_instead,      ///< the op's other operand is larger and stays in place
  goes_around,        ///< shards pass by the products that need them, see cost/ring.hpp
  again,              ///< the results of an op on shards are operands of the op again
  carry,              ///< a shard needs the totals of the preceding shards
  owner_slice,        ///< a slice reads elements of few shards, which their owners send
  stationary_rows,    ///< indices are sent to the rows of a table, and the rows are sent back
  relocated,          ///< an op that was moved needs it, see cost/relocate.hpp
  receiver_needs_it,  ///< the receivers of the op's result need it in another layout
  whole_needed  ///< an op has no loop over the axis (or `any`) and needs the unsharded operand
};

/// One collective of the lowered program, and its origin. A combined all_reduce has a note for each
/// of its operands.
struct collective_note {
  collective::kind_type kind = collective::all_gather;
  collective_reason reason = collective_reason::use_needs_it;
  value_id value = -1;     ///< in the core program
  op_id op = -1;           ///< the op that needs it (for a sum: the op that produced it)
  int tactic = 0;          ///< the last tactic that contributed to it
  std::int64_t bytes = 0;  ///< bytes of its operand on one device
  /// The number of runs: the product of the trip counts of the loops around it.
  std::int64_t times = 1;
  axis_set axes;        ///< the axes of the program's mesh that it communicates along
  bool joined = false;  ///< true if it runs together with that of the preceding note

  /// Bytes that one device sends, each time it runs.
  constexpr std::int64_t bytes_sent(const mesh& m) const {
    std::int64_t members = 1;
    for (int a = 0; a < m.rank; ++a)
      if (axes.contains(a)) members *= m.size(a);
    return partita::bytes_sent(kind, members, bytes);
  }
};

/// Counts the collectives of each kind in a step; combined ones count as before.
constexpr collectives counted(const vec<collective_note>& notes) {
  collectives counts;
  for (const auto& each : notes) counts.count(each.kind, each.times);
  return counts;
}
/// The same for the text of a program: each once, independent of trip counts.
constexpr collectives as_written(const vec<collective_note>& notes) {
  collectives counts;
  for (const auto& each : notes) counts.count(each.kind);
  return counts;
}
/// The number of collectives that a device starts in a step; combined ones count as one.
constexpr std::int64_t launched(const vec<collective_note>& notes) {
  std::int64_t n = 0;
  for (const auto& each : notes) n = saturating_add(n, each.joined ? 0 : each.times);
  return n;
}

/// Options of the lowering.
struct lowering_options {
  /// If true, fuses slices with gathers and reductions, and makes argument and result types local.
  /// If false, the result is the mechanical lowering of section 6.1.
  bool fuse = true;
  /// The passes of section 6.1, and the passes that rewrite the program; both require `fuse`.
  partita::passes passes = {};
};

/// The number of times that each pass which is part of the lowering applied, in the text of the
/// program.
struct fusion_counts {
  int cancelled = 0, all_to_alls = 0, reduce_scatters = 0;
};

/// The result of the lowering.
struct lowered {
  device_program device;
  vec<collective_note> notes;  ///< in the order of the text
  collectives counts;
  fusion_counts fused;
  vec<pass_report> passes;  ///< of the passes that rewrote the program
  failure error;
};

namespace spmd_detail {

/// The notes of a program after a pass rewrote it.
constexpr vec<collective_note> renumbered(const vec<collective_note>& notes,
                                          const renumbering& moved) {
  vec<collective_note> list;
  list.reserve(moved.order.size());
  for (int number : moved.order) {
    list.push_back(notes[number]);
    if (moved.joined[number] != 0) list.back().joined = true;
  }
  return list;
}

}  // namespace spmd_detail

}  // namespace partita
