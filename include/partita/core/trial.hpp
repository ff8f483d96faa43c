/// What would become of a program: actions on a copy that is cheap to begin again.
#pragma once

#include <partita/core/core_program.hpp>

namespace partita {

/// A copy of a program to try actions on, over and over. The program outlives it.
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

  /// The program as it is, without what was tried. Cost: a copy of its state; a copy of its graph,
  /// too, only after actions that inserted ops, in it or in the copy.
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
