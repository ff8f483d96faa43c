/// Ops with nested programs as C++ statements: loops as loops, branches as branches.
#pragma once

#include <partita/backend/code/block_writer.hpp>
#include <partita/op/scan.hpp>
#include <partita/run/device/control_table.hpp>

namespace partita::backend_detail {

/// Writes one op with nested programs. What passes in and out is stored where the wires of its plan
/// say; an operand that the nested programs do not change is used where it is.
class control_writer {
 public:
  control_writer(block_writer& to, block_writer::scope& around, const code_step& step)
      : to_(to),
        s_(around),
        o_(around.plan.ops[step.op]),
        control_(around.plan.controls[step.control]) {
    for (int r = 0; r < static_cast<int>(control_.nested.size()); ++r) {
      const program& nested = s_.p.region(o_.op, r);
      inside_.emplace_back(nested, control_.nested[r],
                           value_names(nested, s_.names.last_number(), s_.labels), s_.labels);
    }
  }
  void write() {
    to_.open("{");
    give_operands();
    switch (run_detail::control_kind_of(o_.def)) {
      case run_detail::control_kind::once:
        branch(0);
        break;
      case run_detail::control_kind::choose:
        write_case();
        break;
      case run_detail::control_kind::repeat:
        write_while();
        break;
      case run_detail::control_kind::scan:
        write_scan();
        break;
      case run_detail::control_kind::unknown:
        run_detail::check_control(o_.def);
    }
    to_.close();
  }

 private:
  using scope = block_writer::scope;

  scope& inside(int r) { return inside_[run_detail::at(r)]; }
  value_id value(const wire_end& e) {
    const program& p = inside(e.region).p;
    return e.kind == wire_end::input ? p.inputs[e.index] : p.outputs[e.index].value;
  }
  const std::string& name(const wire_end& e) {
    return block_writer::pointer(inside(e.region), value(e));
  }
  const std::string& operand(int i) { return block_writer::pointer(s_, s_.p.operand(o_.op, i)); }
  const std::string& result(int i) { return block_writer::pointer(s_, s_.p.op(o_.op).result + i); }
  void give(const code_wire& w, const std::string& name) {
    for (const auto& e : w.inputs) inside(e.region).pointers[run_detail::at(value(e))] = name;
  }
  /// True if a nested program changes the value of a wire.
  bool changes(const code_wire& w) {
    if (!w.carried()) return false;
    for (const auto& out : w.outputs) {
      const value_id root = inside(out.region).plan.roots[value(out)];
      bool same = false;
      for (const auto& in : w.inputs) same = same || (in.region == out.region && value(in) == root);
      if (!same) return true;
    }
    return false;
  }
  static bool is_sliced(const code_wire& w) { return w.operand >= 0 && w.operand_shift > 0; }
  /// True for slices that are read where they are: whole groups of lanes.
  static bool is_in_place(const code_wire& w) {
    return is_sliced(w) && w.type.shape.elements() % run_detail::lanes == 0;
  }

  void give_operands() {
    for (const auto& w : control_.wires) {
      if (w.inputs.empty() || is_in_place(w)) continue;
      const bool whole = w.operand >= 0 && !is_sliced(w);
      if (whole && !changes(w)) {
        give(w, operand(w.operand));
        continue;
      }
      scope& first = inside(w.inputs[0].region);
      to_.declare(first, value(w.inputs[0]), w.type, w.at);
      give(w, name(w.inputs[0]));
      if (whole) to_.copy(operand(w.operand), w.type, name(w.inputs[0]));
    }
  }
  /// In an iteration of a scan: its index, and the slices there.
  void give_slices(const text& position) {
    for (const auto& w : control_.wires) {
      if (w.inputs.empty() || (w.operand >= 0 && !is_sliced(w))) continue;
      if (w.operand < 0) {
        to_.line('*', name(w.inputs[0]), " = static_cast<std::int32_t>(", position, ");");
        continue;
      }
      const text slice =
          concat(operand(w.operand), " + ", position, " * ", w.type.shape.elements());
      if (is_in_place(w))
        to_.line("const auto* const ", to_.variable(inside(0), value(w.inputs[0])), " = ", slice,
                 ";  // ", w.type);
      else
        to_.copy(slice, w.type, name(w.inputs[0]));
    }
  }
  void stack_outputs(const text& position) {
    for (const auto& w : control_.wires)
      if (w.result >= 0 && w.result_shift > 0)
        to_.copy(name(w.outputs[0]), w.type,
                 concat(result(w.result), " + ", position, " * ", w.type.shape.elements()));
  }
  /// Outputs become what is carried. One that is itself carried, by another wire, waits in spare
  /// memory until all are known.
  void carry(int r) {
    std::vector<std::pair<const code_wire*, text>> next;
    for (const auto& w : control_.wires) {
      if (!changes(w)) continue;
      for (const auto& e : w.outputs) {
        if (e.region != r) continue;
        text from = concat(name(e));
        if (inside(r).plan.place(value(e)).where == code_place::kind::input) {
          from = concat("d.memory<", cpp_name_of(w.type.element), ">(", w.spare, ')');
          to_.copy(name(e), w.type, from);
        }
        next.push_back({&w, from});
      }
    }
    for (const auto& [w, from] : next) to_.copy(from, w->type, name(w->inputs[0]));
  }
  void give_carried() {
    for (const auto& w : control_.wires)
      if (w.carried() && w.result >= 0 && !w.inputs.empty())
        to_.copy(name(w.inputs[0]), w.type, result(w.result));
  }
  void branch(int r) {
    to_.write(inside(r));
    for (const auto& w : control_.wires)
      for (const auto& e : w.outputs)
        if (e.region == r) to_.copy(name(e), w.type, result(w.result));
  }

  void write_case() {
    const int last = static_cast<int>(inside_.size()) - 1;
    to_.line("const auto chosen = d.agreed(", operand(0), ");");
    to_.open("switch (chosen < 0 || chosen > ", last, " ? ", last, " : chosen) {");
    for (int r = 0; r <= last; ++r) {
      to_.open("case ", r, ": {");
      branch(r);
      to_.line("break;");
      to_.close();
    }
    to_.close();
  }
  void write_while() {
    to_.open("for (;;) {");
    to_.write(inside(0));
    to_.line("if (!d.agreed(", name({wire_end::output, 0, 0, 0}), ")) break;");
    to_.write(inside(1));
    carry(1);
    to_.close();
    give_carried();
  }
  void write_scan() {
    const op::scan::counts k(s_.p.attrs(o_.op));
    const text t = concat('t', to_.depth_);
    if (k.reversed)
      to_.open("for (std::int64_t ", t, " = ", k.length, "; ", t, "-- > 0;) {");
    else
      to_.open("for (std::int64_t ", t, " = 0; ", t, " < ", k.length, "; ++", t, ") {");
    give_slices(t);
    to_.write(inside(0));
    stack_outputs(t);
    carry(0);
    to_.close();
    give_carried();
  }

  block_writer& to_;
  scope& s_;
  const code_op& o_;
  const code_control& control_;
  std::vector<scope> inside_;  // by nested program
};

inline void block_writer::write_control(scope& s, const code_step& step) {
  control_writer(*this, s, step).write();
}

}  // namespace partita::backend_detail
