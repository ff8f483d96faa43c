/// Clocks and memory gauges of the meshes on which running_cost plays a program.
#pragma once

#include <cstddef>

#include <partita/cost/running_steps.hpp>
#include <partita/support/vec.hpp>

namespace partita::cost_detail {

/// Seconds and bytes of a run.
struct run_time {
  double time = 0, compute = 0, communication = 0, peak = 0;
};

/// A resource that does one thing at a time, allocated in program order. A task that waits leaves a
/// gap. Later tasks of the program that are ready sooner fill the gaps, split over several gaps if
/// need be: a displaced task would continue after the one that interrupts it.
class timeline {
 public:
  constexpr double end() const { return end_; }
  /// Closes the time before `end`: nothing more is allocated there.
  constexpr void close(double end) {
    gaps_.clear();
    first_ = 0;
    end_ = end;
  }
  /// Allocates `seconds` from `ready` on, and returns the end.
  constexpr double take(double ready, double seconds) {
    for (std::size_t i = first_gap(ready); i < gaps_.size(); ++i) {
      const double begin = gaps_[i].begin > ready ? gaps_[i].begin : ready;
      const double room = gaps_[i].end - begin;
      if (seconds <= room) return cut(i, begin, begin + seconds);
      seconds -= room;
      gaps_[i].end = begin;
      if (i == first_ && gaps_[i].begin >= begin) ++first_;
    }
    if (ready > end_) {
      gaps_.push_back({end_, ready});
      end_ = ready;
    }
    return end_ += seconds;
  }

 private:
  struct gap {
    double begin = 0, end = 0;
  };
  double end_ = 0;
  vec<gap> gaps_;          ///< in order of time; some are empty
  std::size_t first_ = 0;  ///< all gaps before it are empty

  /// Returns the first gap that ends after `time`.
  constexpr std::size_t first_gap(double time) const {
    std::size_t low = first_, high = gaps_.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (gaps_[middle].end > time)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }
  constexpr double cut(std::size_t i, double begin, double end) {
    const gap left{gaps_[i].begin, begin};
    gaps_[i].begin = end;
    if (left.end > left.begin) gaps_.insert_at(i, left);
    return end;
  }
};

/// Timelines of the units that run kernels, and of the links.
struct clocks {
  timeline units, links;
  constexpr double latest() const { return units.end() > links.end() ? units.end() : links.end(); }
  constexpr void close(double end) {
    units.close(end);
    links.close(end);
  }
};

/// Live bytes, and their maximum so far.
struct memory_gauge {
  double live = 0, peak = 0;
  /// Records a peak with `inside` bytes more than the live ones.
  constexpr void note(double inside) { peak = live + inside > peak ? live + inside : peak; }
  constexpr void add(double bytes) {
    live += bytes;
    note(0);
  }
};

/// A run in which everything happens on one mesh, once.
struct one_mesh {
  clocks all;
  memory_gauge memory;

  constexpr clocks& of(op_id) { return all; }
  constexpr clocks& each_time(op_id) { return all; }
  constexpr bool together(op_id, op_id) const { return true; }
  /// Enters a slot. `level`: by slot, the change of live bytes from the previous slot.
  constexpr void pass(const vec<double>& level, int, int slot) { memory.add(level[slot]); }
  constexpr void nested(op_id, double bytes) { memory.note(bytes); }
};

/// A run on several meshes. Each mesh has clocks for a microbatch, and others for work that it does
/// once.
struct many_meshes {
  const running_steps& steps;
  vec<clocks> all;  ///< two for each mesh: for work done once, and for a microbatch
  vec<memory_gauge> memory;

  constexpr explicit many_meshes(const running_steps& s)
      : steps(s),
        all(static_cast<std::size_t>(2 * s.meshes()), clocks()),
        memory(static_cast<std::size_t>(s.meshes()), memory_gauge()) {}
  constexpr clocks& of(op_id o) { return all[lane(o)]; }
  constexpr clocks& each_time(op_id o) { return all[2 * steps.mesh_of(o) + 1]; }
  /// True if `b` has to wait for `a`. Results of another mesh are available: it works on another
  /// microbatch meanwhile.
  constexpr bool together(op_id a, op_id b) const { return lane(a) == lane(b); }
  /// Enters a slot. `level`: by mesh and slot, as above.
  constexpr void pass(const vec<double>& level, int slots, int slot) {
    for (int m = 0; m < steps.meshes(); ++m) memory[m].add(level[m * slots + slot]);
  }
  constexpr void nested(op_id o, double bytes) { memory[steps.mesh_of(o)].note(bytes); }

 private:
  constexpr int lane(op_id o) const { return 2 * steps.mesh_of(o) + steps.inside(o); }
};

}  // namespace partita::cost_detail
