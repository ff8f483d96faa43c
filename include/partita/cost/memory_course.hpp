/// The contents of a device's memory while each op of a program runs.
#pragma once

#include <cstdint>

#include <partita/cost/memory.hpp>
#include <partita/ir/fusion.hpp>
#include <partita/ir/live_bytes.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Memory of a program on one device for each of its ops, by role; see live_bytes.
///
/// Law       `all(op)` equals the figure of live_bytes, arguments and nested programs included; its
///           maximum is the peak
class memory_course {
 public:
  /// Cost      linear in values and ops
  constexpr explicit memory_course(const device_program& d) : ops_(d.local.op_count()) {
    const program& p = d.local;
    const live_bytes live(p);
    const fused_kernels kernels(p);
    const cost_detail::memory_roles roles(p, live);
    nested_ = live.inside;
    vec<std::int64_t> freed[memory_kinds];
    for (int k = 0; k < memory_kinds; ++k) {
      of_[k].resize(static_cast<std::size_t>(ops_), 0);
      freed[k].resize(static_cast<std::size_t>(ops_) + 1, 0);
    }
    for (value_id v = 0; v < p.value_count(); ++v) {
      const op_id made = p.producers[v];
      const bool argument = p.is(made, op_role::parameter);
      if (live.donated[v] != 0 || (!argument && !kernels.stored(v))) continue;
      const op_id last = live.last_use[v] - (live.overwritten[v] != 0 ? 1 : 0);
      const op_id first = argument ? 0 : made, end = argument || last >= ops_ ? ops_
                                                     : last < made            ? made + 1
                                                                              : last + 1;
      const auto count = [&](std::int64_t& sum) { sum = saturating_add(sum, p.types[v].bytes()); };
      count(of_[static_cast<int>(roles[v])][first]);
      count(freed[static_cast<int>(roles[v])][end]);
    }
    for (int k = 0; k < memory_kinds; ++k) {
      level now;
      for (op_id o = 0; o < ops_; ++o) {
        now.add(of_[k][o]);
        now.remove(freed[k][o]);
        of_[k][o] = now.value();
      }
    }
  }

  constexpr op_id ops() const { return ops_; }
  /// Returns the bytes of this role while an op runs.
  constexpr std::int64_t of(memory_kind k, op_id o) const { return of_[static_cast<int>(k)][o]; }
  /// Returns the bytes of programs nested in an op, without their arguments.
  constexpr std::int64_t nested(op_id o) const { return nested_[o]; }
  /// Returns the total bytes while an op runs.
  constexpr std::int64_t all(op_id o) const {
    std::int64_t sum = nested_[o];
    for (const auto& each : of_) sum = saturating_add(sum, each[o]);
    return sum;
  }

 private:
  op_id ops_;
  vec<std::int64_t> of_[memory_kinds];
  vec<std::int64_t> nested_;
};

}  // namespace partita
