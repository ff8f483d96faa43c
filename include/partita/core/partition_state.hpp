/// How far the partitioning of a graph has come.
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

struct core_options {
  bool halos = true;      ///< may a loop see elements of neighbouring pieces?
  bool may_split = true;  ///< may propagation split axes?
  /// Of evidence for the rows and for the batch of a lookup along one axis the batch is taken, and
  /// rows stay where they are where that sends less; see spmd/looked_up.hpp.
  bool stationary_rows = false;
  syntax advice = syntax::cpp;  ///< the syntax of advice in messages: that of the tactics
};

/// Everything that an action changes where it needs no op that is not there: about 50 bytes for an
/// op, in a dozen arrays, so that a copy is cheap.
struct partition_state {
  partita::mesh mesh;  ///< the user's, with axes split as loops and actions need it
  named_axes named;    ///< the axes that actions speak of, by number
  nest_list nests;     ///< by op
  /// By factor, as in the graph's table: positions left per iteration of the loops so far.
  vec<std::int64_t> local;
  vec<action> actions;                    ///< the log
  conflict_list conflicts;                ///< what the last propagation left open
  vec<conflict_change> conflict_changes;  ///< by propagation, in their order
  padding_record padding;                 ///< what tactics said of it
  int tactic = 0;                         ///< recorded in loops and actions
  vec<text> tactic_names;                 ///< for messages, as far as they are known
  core_options options;
  op_set waiting;           ///< ops whose surroundings have changed
  std::int64_t visits = 0;  ///< of ops by propagation, so far
  op_set open;              ///< ops that had a conflict when they were visited last
  op_set revisited;         ///< those of them whose conflicts may have changed
  /// Ops that got a loop or other operands, in the order of these changes; -1 stands for all ops.
  vec<op_id> changes;
  std::size_t terms_seen = 0;  ///< how many of these were looked at for sums, see sliced_terms.hpp
};

/// What led from one state to another one, of the same ops and axes.
struct partition_step {
  struct added_loop {
    op_id op = -1;
    loop what;
  };
  vec<added_loop> loops;  ///< in the order of `partition_state::changes`
  vec<action> actions;
  vec<conflict_change> conflict_changes;
  // Of the state behind it:
  conflict_list conflicts;
  op_set open;
  std::int64_t visits = 0;
};

}  // namespace partita
