/// Clocks and memory of the meshes that running_cost plays a program on.
#pragma once

#include <cstddef>

#include <partita/cost/running_steps.hpp>
#include <partita/support/vec.hpp>

namespace partita::cost_detail {

/// Seconds and bytes of a run.
struct run_time {
  double time = 0, compute = 0, communication = 0, peak = 0;
};

/// The time of what does one thing at a time, given out in the order of the program. What waits
/// leaves a gap, which is for what comes later in the program and waits for less: in as many pieces
/// as gaps are there from when it is ready (what it displaces would go on behind it).
class timeline {
 public:
  constexpr double end() const { return end_; }
  /// Until `end`, nothing is given out any more.
  constexpr void close(double end) {
    gaps_.clear();
    first_ = 0;
    end_ = end;
  }
  /// Gives when so many seconds are over, of which the first can be at `ready`.
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
  vec<gap> gaps_;          ///< in the order of time; some are empty
  std::size_t first_ = 0;  ///< those in front of it are empty

  /// That ends behind a time.
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

/// Of the units that run kernels, and of the links.
struct clocks {
  timeline units, links;
  constexpr double latest() const { return units.end() > links.end() ? units.end() : links.end(); }
  constexpr void close(double end) {
    units.close(end);
    links.close(end);
  }
};

/// Bytes that live, and the most so far.
struct memory_gauge {
  double live = 0, peak = 0;
  /// `inside`: beside what lives.
  constexpr void note(double inside) { peak = live + inside > peak ? live + inside : peak; }
  constexpr void add(double bytes) {
    live += bytes;
    note(0);
  }
};

/// Everything happens on one mesh, once.
struct one_mesh {
  clocks all;
  memory_gauge memory;

  constexpr clocks& of(op_id) { return all; }
  constexpr clocks& each_time(op_id) { return all; }
  constexpr bool together(op_id, op_id) const { return true; }
  /// `level`: by slot, bytes more than in the slot before it.
  constexpr void pass(const vec<double>& level, int, int slot) { memory.add(level[slot]); }
  constexpr void nested(op_id, double bytes) { memory.note(bytes); }
};

/// Each mesh has clocks for a microbatch, and others for what it does once.
struct many_meshes {
  const running_steps& steps;
  vec<clocks> all;  ///< two for each mesh: once, for a microbatch
  vec<memory_gauge> memory;

  constexpr explicit many_meshes(const running_steps& s)
      : steps(s),
        all(static_cast<std::size_t>(2 * s.meshes()), clocks()),
        memory(static_cast<std::size_t>(s.meshes()), memory_gauge()) {}
  constexpr clocks& of(op_id o) { return all[lane(o)]; }
  constexpr clocks& each_time(op_id o) { return all[2 * steps.mesh_of(o) + 1]; }
  /// What another mesh made is there: it works on another microbatch meanwhile.
  constexpr bool together(op_id a, op_id b) const { return lane(a) == lane(b); }
  /// `level`: by mesh and slot, as above.
  constexpr void pass(const vec<double>& level, int slots, int slot) {
    for (int m = 0; m < steps.meshes(); ++m) memory[m].add(level[m * slots + slot]);
  }
  constexpr void nested(op_id o, double bytes) { memory[steps.mesh_of(o)].note(bytes); }

 private:
  constexpr int lane(op_id o) const { return 2 * steps.mesh_of(o) + steps.inside(o); }
};

}  // namespace partita::cost_detail
