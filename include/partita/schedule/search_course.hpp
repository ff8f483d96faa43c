/// What a tactic that searches tells of its search.
#pragma once

#include <cstdint>

#include <partita/support/vec.hpp>

namespace partita {

/// How a search went, in costs: seconds of a step, more where memory is exceeded.
struct search_course {
  /// The best cost, whenever it became less.
  struct improvement {
    std::int64_t evaluations = 0;
    double seconds = 0, cost = 0;
  };
  double before = 0;             ///< the simulated cost where the search began
  double after = 0;              ///< the same behind what it found
  double bound = 0;              ///< nothing along its axes costs less, by the search's estimate
  std::int64_t evaluations = 0;  ///< costs that were asked for; 0: there was no search
  std::int64_t states = 0;       ///< partitionings that were told apart
  double seconds = 0;            ///< that the search took; 0 in constant evaluation
  vec<improvement> log;          ///< the least cost so far, by the search's estimate
};

}  // namespace partita
