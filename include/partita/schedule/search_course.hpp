/// The record of a tactic's search.
#pragma once

#include <cstdint>

#include <partita/support/vec.hpp>

namespace partita {

/// The course of a search. Costs are seconds of a step, plus a penalty if memory is exceeded.
struct search_course {
  /// An evaluation that lowered the best cost.
  struct improvement {
    std::int64_t evaluations = 0;
    double seconds = 0, cost = 0;
  };
  double before = 0;  ///< simulated cost where the search began
  double after = 0;   ///< simulated cost of the best result
  /// Lower bound of the cost along its axes, by the search's estimate.
  double bound = 0;
  std::int64_t evaluations = 0;  ///< number of costs requested; 0 if no search ran
  std::int64_t states = 0;       ///< number of distinct partitionings
  double seconds = 0;            ///< duration of the search; 0 in constant evaluation
  vec<improvement> log;          ///< the lowest cost so far, by the search's estimate
};

}  // namespace partita
