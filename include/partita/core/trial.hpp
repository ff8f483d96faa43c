/// Trials: actions on a copy of a program that is cheap to reset.
#pragma once

#include <partita/core/core_program.hpp>

namespace partita {

/// A copy of a program on which actions can be tried repeatedly. The program must outlive it.
///
/// ```cpp
/// core_trial trial(core);
/// for (int dim : {0, 1}) {
///   core_program& tried = trial.restart();
///   if (!tried.tile(w, dim, axis)) tried.propagate(), consider(tried);
/// }
/// ```
class core_trial {
 public:
  constexpr explicit core_trial(const core_program& base)
      : base_(base), tried_(base), edits_(base.edits()) {}

  /// Resets the copy to the program and returns it. Cost: a copy of the state; a copy of the graph
  /// only if ops were inserted in either since the last call.
  constexpr core_program& restart() {
    tried_.restore(base_, tried_.edits() == edits_ && base_.edits() == edits_);
    edits_ = base_.edits();
    return tried_;
  }

 private:
  const core_program& base_;
  core_program tried_;
  std::int64_t edits_;
};

}  // namespace partita
