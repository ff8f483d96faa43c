/// Things that do one thing at a time, and those that wait for them.
#pragma once

#include <partita/support/heap.hpp>
#include <partita/support/vec.hpp>

namespace partita::cost_detail {

struct waiting {
  double ready;
  int task;
  constexpr bool operator<(const waiting& b) const {
    return ready < b.ready || (ready == b.ready && task < b.task);
  }
};
/// A resource that does one thing at a time: the units that run kernels, or the links.
struct resource {
  double free = 0;
  heap<waiting> later;  ///< tasks whose operands are computed by then
  heap<int> now;        ///< tasks whose operands are available

  constexpr bool idle() const { return later.empty() && now.empty(); }
  /// Returns the time at which the next task can begin.
  constexpr double next() const {
    return now.empty() && later.least().ready > free ? later.least().ready : free;
  }
  /// Removes the first task in program order that can begin then.
  constexpr int take() {
    free = next();
    while (!later.empty() && later.least().ready <= free) now.push(later.pop().task);
    return now.pop();
  }
};

}  // namespace partita::cost_detail
