/// Ops with nested programs as C++ statements: loops as loops, branches as branches.
#pragma once

#include <memory>

#include <partita/backend/code/block_writer.hpp>

namespace partita::backend_detail {

/// Writes one op with nested programs. What passes in and out is stored where the wires of its plan
/// say; an operand that the nested programs do not change is used where it is.
class control_writer {
 public:
  control_writer(block_writer& to, block_writer::scope& around, const code_step& step)
      : to_(to),
        s_(around),
        n_(around.p.op(step.op)),
        o_(step.op),
        control_(around.plan.controls[step.control]) {
    for (int r = 0; r < n_.region_count; ++r) {
      const program& nested = s_.p.region(o_, r);
      names_.push_back(std::make_unique<value_names>(nested, s_.names.last_number(), s_.labels));
      inside_.push_back(std::make_unique<block_writer::scope>(nested, control_.nested[r],
                                                              *names_.back(), s_.labels));
    }
  }
  void write() {
    head();
    for (int r = 0; r < n_.result_count; ++r) to_.declare(s_, n_.result + r);
    to_.open("{");
    give_operands();
    switch (run_detail::control_kind_of(n_.def)) {
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
        run_detail::check_control(n_.def);
    }
    to_.close();
  }

 private:
  static constexpr std::int64_t lanes = run_detail::lanes;
  static std::string number(std::int64_t n) { return std::to_string(n); }
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  void head() {
    text t;
    append_list(t, n_.result_count, [&](int i) { t << '%' << s_.names[n_.result + i]; });
    t << " = " << n_.def->name;
    append_list(t << '(', n_.operand_count,
                [&](int i) { t << '%' << s_.names[s_.p.operand(o_, i)]; });
    t << ')';
    to_.line("// " + std::string(t.view()));
  }
  block_writer::scope& inside(int r) { return *inside_[at(r)]; }
  value_id input(const wire_end& e) { return inside(e.region).p.inputs[at(e.index)]; }
  value_id output(const wire_end& e) { return inside(e.region).p.outputs[at(e.index)].value; }
  const std::string& output_pointer(const wire_end& e) {
    return block_writer::pointer(inside(e.region), output(e));
  }
  const std::string& operand(int i) { return block_writer::pointer(s_, s_.p.operand(o_, i)); }
  const std::string& result(int i) { return block_writer::pointer(s_, n_.result + i); }
  /// The name by which the nested programs know a wire.
  const std::string& inner(const code_wire& w) {
    return block_writer::pointer(inside(w.inputs[0].region), input(w.inputs[0]));
  }
  void give(const code_wire& w, const std::string& name) {
    for (const auto& e : w.inputs) inside(e.region).pointers[at(input(e))] = name;
  }
  /// Declares the memory of a wire, under the name that the first nested program has for it.
  void keep(const code_wire& w) {
    block_writer::scope& first = inside(w.inputs[0].region);
    const std::string name = to_.variable(first, input(w.inputs[0]));
    give(w, name);
    to_.line("auto* const " + name + " = d.memory<" + block_writer::cpp(w.type) + ">(" +
             number(w.at) + ");  // " + block_writer::printed(w.type));
  }
  /// True if every nested program returns the value unchanged.
  bool passes_through(const code_wire& w) {
    for (const auto& out : w.outputs) {
      const value_id root = control_.nested[out.region].roots[output(out)];
      bool same = false;
      for (const auto& in : w.inputs) same = same || (in.region == out.region && input(in) == root);
      if (!same) return false;
    }
    return true;
  }
  bool is_sliced(const code_wire& w) const { return w.operand >= 0 && w.operand_shift > 0; }
  bool changes(const code_wire& w) { return w.carried() && !passes_through(w); }
  /// A slice is read where it is if whole groups of lanes of it are.
  static bool is_in_place(const code_wire& w) { return w.type.shape.elements() % lanes == 0; }

  void give_operands() {
    for (const auto& w : control_.wires) {
      if (w.inputs.empty()) continue;
      if (is_sliced(w) && is_in_place(w)) continue;
      if (w.operand >= 0 && !is_sliced(w) && !changes(w)) {
        give(w, operand(w.operand));
        continue;
      }
      keep(w);
      if (w.operand >= 0 && !is_sliced(w)) to_.copy(operand(w.operand), w.type, inner(w));
    }
  }
  /// In an iteration of a scan: its index, and the slices there.
  void give_slices(const std::string& position) {
    for (const auto& w : control_.wires) {
      if (w.inputs.empty() || (w.operand >= 0 && w.operand_shift == 0)) continue;
      if (w.operand < 0) {
        to_.line('*' + inner(w) + " = static_cast<std::int32_t>(" + position + ");");
        continue;
      }
      const std::string slice =
          operand(w.operand) + " + " + position + " * " + number(w.type.shape.elements());
      if (!is_in_place(w)) {
        to_.copy(slice, w.type, inner(w));
        continue;
      }
      block_writer::scope& body = inside(0);
      const std::string name = to_.variable(body, input(w.inputs[0]));
      give(w, name);
      to_.line("const auto* const " + name + " = " + slice + ";  // " +
               block_writer::printed(w.type));
    }
  }
  void stack_outputs(const std::string& position) {
    for (const auto& w : control_.wires)
      if (w.result >= 0 && w.result_shift > 0)
        to_.copy(output_pointer(w.outputs[0]), w.type,
                 result(w.result) + " + " + position + " * " + number(w.type.shape.elements()));
  }
  /// Outputs become what is carried. One that is itself carried, by another wire, waits in spare
  /// memory until all are known.
  void carry(int r) {
    std::vector<std::pair<const code_wire*, std::string>> next;
    for (const auto& w : control_.wires) {
      if (!changes(w)) continue;
      for (const auto& e : w.outputs) {
        if (e.region != r) continue;
        std::string from = output_pointer(e);
        const code_plan& plan = control_.nested[r];
        if (plan.place(output(e)).where == code_place::kind::input) {
          const std::string spare =
              "d.memory<" + block_writer::cpp(w.type) + ">(" + number(w.spare) + ")";
          to_.copy(from, w.type, spare);
          from = spare;
        }
        next.push_back({&w, from});
      }
    }
    for (const auto& [w, from] : next) to_.copy(from, w->type, inner(*w));
  }
  void give_carried() {
    for (const auto& w : control_.wires)
      if (w.carried() && w.result >= 0 && !w.inputs.empty())
        to_.copy(inner(w), w.type, result(w.result));
  }
  void branch(int r) {
    to_.write(inside(r));
    for (const auto& w : control_.wires)
      for (const auto& e : w.outputs)
        if (e.region == r) to_.copy(output_pointer(e), w.type, result(w.result));
  }

  void write_case() {
    const std::string last = number(n_.region_count - 1);
    to_.line("const auto chosen = d.agreed(" + operand(0) + ");");
    to_.open("switch (chosen < 0 || chosen > " + last + " ? " + last + " : chosen) {");
    for (int r = 0; r < n_.region_count; ++r) {
      to_.open("case " + number(r) + ": {");
      branch(r);
      to_.line("break;");
      to_.close();
    }
    to_.close();
  }
  void write_while() {
    to_.open("for (;;) {");
    to_.write(inside(0));
    to_.line("if (!d.agreed(" + output_pointer({wire_end::output, 0, 0, 0}) + ")) break;");
    to_.write(inside(1));
    carry(1);
    to_.close();
    give_carried();
  }
  void write_scan() {
    const op::scan::counts k(s_.p.attrs(o_));
    const std::string t = "t" + number(to_.depth_);
    if (k.reversed)
      to_.open("for (std::int64_t " + t + " = " + number(k.length) + "; " + t + "-- > 0;) {");
    else
      to_.open("for (std::int64_t " + t + " = 0; " + t + " < " + number(k.length) + "; ++" + t +
               ") {");
    give_slices(t);
    to_.write(inside(0));
    stack_outputs(t);
    carry(0);
    to_.close();
    give_carried();
  }

  block_writer& to_;
  block_writer::scope& s_;
  const op_node& n_;
  op_id o_;
  const code_control& control_;
  std::vector<std::unique_ptr<value_names>> names_;
  std::vector<std::unique_ptr<block_writer::scope>> inside_;  // by nested program
};

inline void block_writer::write_control(scope& s, const code_step& step) {
  control_writer(*this, s, step).write();
}

}  // namespace partita::backend_detail
