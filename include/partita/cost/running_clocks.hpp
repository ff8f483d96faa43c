/// Clocks and memory of the meshes that running_cost plays a program on.
#pragma once

#include <partita/cost/running_steps.hpp>
#include <partita/support/vec.hpp>

namespace partita::cost_detail {

/// Seconds and bytes of a run.
struct run_time {
  double time = 0, compute = 0, communication = 0, peak = 0;
};

/// Two clocks: of the units that run kernels, and of the links.
struct clocks {
  double units = 0, links = 0;
  constexpr double latest() const { return units > links ? units : links; }
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
