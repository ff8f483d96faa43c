/// The state of a partitioning: everything that changes while the graph stays the same.
#pragma once

#include <cstdint>

#include <partita/core/conflict_list.hpp>
#include <partita/core/loops.hpp>
#include <partita/core/named_axes.hpp>
#include <partita/core/op_order.hpp>
#include <partita/core/uneven.hpp>
#include <partita/support/syntax.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Options of a core program.
struct core_options {
  bool halos = true;      ///< true if loops may read elements of neighbouring shards
  bool may_split = true;  ///< true if propagation may split axes
  /// If evidence along one axis supports both the rows and the batch of a gather, propagation takes
  /// the batch. The rows then stay in place if that sends less; see spmd/row_lookup.hpp.
  bool stationary_rows = false;
  syntax advice = syntax::cpp;  ///< the syntax of advice in messages: that of the tactics
};

/// Everything that an action changes unless it inserts an op: about 50 bytes per op, in a dozen
/// arrays, so that a copy is cheap.
struct partition_state {
  partita::mesh mesh;  ///< the user's mesh, with axes split as loops and actions need it
  named_axes named;    ///< the axes that actions name, by number
  nest_list nests;     ///< by op
  /// By factor, as in the graph's table: the positions per iteration of the loops so far.
  vec<std::int64_t> local;
  vec<action> actions;                    ///< the log
  conflict_list conflicts;                ///< the open conflicts after the last propagation
  vec<conflict_change> conflict_changes;  ///< all changes of `conflicts`, in order
  vec<settled_conflict> settled;          ///< by actions, in this order
  padding_record padding;                 ///< the tactics' requests to pad or not to pad
  int tactic = 0;                         ///< the current tactic, recorded in loops and actions
  vec<text> tactic_names;  ///< for messages; may be shorter than the number of tactics
  core_options options;
  op_set waiting;           ///< the ops whose surroundings have changed
  std::int64_t visits = 0;  ///< the number of ops that propagation has visited
  op_set open;              ///< the ops that had a conflict at their last visit
  op_set revisited;         ///< the ops in `open` whose conflicts may have changed
  /// Ops that got a loop or other operands, in the order of these changes; -1 means all ops.
  vec<op_id> changes;
  /// The number of `changes` before the current tactic.
  std::size_t tactic_changes = 0;
  /// The number of `changes` already checked for sums, see sliced_terms.hpp.
  std::size_t terms_seen = 0;
};

/// The difference between two states of the same ops and axes.
struct partition_step {
  struct added_loop {
    op_id op = -1;
    loop what;
  };
  vec<added_loop> loops;  ///< in the order of `partition_state::changes`
  vec<action> actions;
  vec<conflict_change> conflict_changes;
  // Copied from the later state:
  conflict_list conflicts;
  op_set open;
  std::int64_t visits = 0;
};

}  // namespace partita
