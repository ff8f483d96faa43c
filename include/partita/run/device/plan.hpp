/// The decisions that an executable makes once: which ops run together, with which kernels, over
/// which axes values vary, and where they are stored.
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
  /// `inputs`: the axes over which each input varies; `outermost`: true if outputs may be returned
  /// as arrays.
  ///
  /// Errors    R005 no kernel, R007 unknown op with nested programs, R015 an op names an axis that
  ///           the mesh does not have
  plan(const program& p, const device_set& devices, std::span<const axis_set> inputs,
       std::span<const kernel_entry> own, bool fuse, bool outermost)
      : p_(p),
        axes_(varying_values(with_known_axes(p, devices.mesh()), devices.mesh(),
                             {inputs.data(), inputs.size()})),
        rules_(p, own, fuse),
        groups_(p, rules_, axes_),
        memory_(p, rules_, groups_, devices, axes_, outermost) {
    for (auto& s : groups_.steps) {
      if (s.what == step::kind::kernel) find_kernel_of(s, own);
      if (s.what == step::kind::control) check_control(p_.op(s.op).def);
    }
    for (auto& s : groups_.steps)
      if (s.what == step::kind::group) s.blocks = group_compiler(p_, rules_, groups_, s).compile();
  }
  plan(const plan&) = delete;  // its parts refer to each other

  const std::vector<step>& steps() const { return groups_.steps; }
  const memory_plan& memory() const { return memory_; }
  /// Returns the value whose memory a value uses.
  value_id root(value_id v) const { return rules_.root(v); }
  /// Returns the axes over which a value varies.
  axis_set axes(value_id v) const { return axes_[at(v)]; }

 private:
  /// Returns the program if its ops name only axes of the mesh.
  ///
  /// Errors    R015 an op names another axis
  static const program& with_known_axes(const program& p, const mesh& m) {
    const auto need = [&](const op_def& op, int axis) {
      if (axis >= 0 && axis < m.rank) return;
      if (m.rank == 0)
        throw error(concat("R015 run: ", op.name,
                           " works on the devices of a mesh, but this run is "
                           "without a mesh; emulate runs device-local programs"));
      throw error(concat("R015 run: ", op.name, " names axis number ", axis, "; the mesh ", m,
                         " has ", m.rank));
    };
    for (op_id o = 0; o < p.op_count(); ++o) {
      const op_def& op = *p.op(o).def;
      if (op.collective) {
        const collective what = p.collective_of(o);
        for (const auto& e : what.axes) need(op, e.axis);
        for (const auto& e : what.from) need(op, e.axis);
      } else if (op.id == partita::def<op::shard_start>.id) {
        for (int axis : op::shard_start::axes(p.attrs(o))) need(op, axis);
      }
    }
    return p;
  }
  void find_kernel_of(step& s, std::span<const kernel_entry> own) const {
    const op_def* op = p_.op(s.op).def;
    s.kernel = find_kernel(op, own);
    if (s.kernel.run == nullptr)
      throw error(
          concat("R005 ", op->name, ": this op has no kernel; give one in run_options::kernels"));
  }

  const program& p_;
  vec<axis_set> axes_;  // by value
  fusion_rules rules_;
  grouping groups_;
  memory_plan memory_;
};

}  // namespace partita::run_detail
