/// What an executable decides once: which ops run together, with which kernels, over which axes
/// values vary, and where they lie.
#pragma once

#include <span>
#include <vector>

#include <partita/run/device/control_table.hpp>
#include <partita/run/fusion/group_compiler.hpp>
#include <partita/run/fusion/grouping.hpp>
#include <partita/run/kernels/library.hpp>
#include <partita/run/memory/memory_plan.hpp>

namespace partita::run_detail {

class plan {
 public:
  /// `inputs`: over which axes each input varies; `outermost`: may outputs be handed out as arrays?
  ///
  /// Errors    R005 no kernel, R007 unknown op with nested programs
  plan(const program& p, const device_set& devices, std::span<const axis_set> inputs,
       std::span<const kernel_entry> own, bool fuse, bool outermost)
      : p_(p),
        axes_(varying_values(p, devices.mesh(), inputs)),
        rules_(p, own, fuse),
        groups_(p, rules_, axes_),
        memory_(p, rules_, groups_, devices, axes_, outermost) {
    for (auto& s : groups_.steps) {
      if (s.what == step::kind::kernel) s.run = kernel_of(p_.op(s.op).def, own);
      if (s.what == step::kind::control) check_control(p_.op(s.op).def);
    }
    for (auto& s : groups_.steps)
      if (s.what == step::kind::group) s.blocks = group_compiler(p_, rules_, groups_, s).compile();
  }
  plan(const plan&) = delete;  // its parts refer to each other

  const std::vector<step>& steps() const { return groups_.steps; }
  const memory_plan& memory() const { return memory_; }
  /// The value whose memory a value uses.
  value_id root(value_id v) const { return rules_.root(v); }
  /// Over which a value varies.
  axis_set axes(value_id v) const { return axes_[static_cast<std::size_t>(v)]; }

 private:
  static kernel_function kernel_of(const op_def* op, std::span<const kernel_entry> own) {
    const kernel_function run = find_kernel(op, own);
    if (run == nullptr)
      throw error(
          concat("R005 ", op->name, ": this op has no kernel; give one in run_options::kernels"));
    return run;
  }

  const program& p_;
  std::vector<axis_set> axes_;  // by value
  fusion_rules rules_;
  grouping groups_;
  memory_plan memory_;
};

}  // namespace partita::run_detail
