/// Execution of ops with nested programs.
#pragma once

#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <partita/ir/print.hpp>
#include <partita/run/device/control_table.hpp>
#include <partita/run/device/frame.hpp>

namespace partita::run_detail {

/// One run of an op with nested programs. Each nested program runs in its own workspace; values
/// pass along the wires of the op.
class control_flow {
 public:
  control_flow(const frame& f, op_id o, const frame::control& c, workspace& w, thread_pool& threads)
      : f_(f), op_(o), n_(f.p_.op(o)), c_(c), w_(w), threads_(threads) {}

  void run() {
    for (int r = 0; r < n_.result_count; ++r) results_.push_back(f_.place(n_.result + r, w_));
    give_operands();
    switch (control_kind_of(n_.def)) {
      case control_kind::once:
        return run_branch(0);
      case control_kind::choose:
        return run_case();
      case control_kind::repeat:
        return run_while();
      case control_kind::scan:
        return run_scan();
      case control_kind::unknown:  // the plan rejects it
        break;
    }
  }

 private:
  /// A value in memory: one copy for each coordinate over `axes`, `stride` bytes apart.
  template <class Byte>
  struct copies {
    Byte* first = nullptr;
    axis_set axes;
    std::int64_t stride = 0;
  };

  void run_while() {
    for (;;) {
      run_region(0);
      if (*shared(output({wire_end::output, 0, 0, 0}), 1, "condition") == std::byte{0}) break;
      run_region(1);
      carry(1);
    }
    give_carried();
  }

  void run_scan() {
    const op::scan::counts k(f_.p_.attrs(op_));
    for (std::int64_t i = 0; i < k.length; ++i) {
      const std::int64_t position = k.reversed ? k.length - 1 - i : i;
      give_slices(position);
      run_region(0);
      stack_outputs(position);
      carry(0);
    }
    give_carried();
  }

  void run_case() {
    std::int32_t i = 0;
    std::memcpy(&i, shared(operand(0), sizeof i, "index"), sizeof i);
    run_branch(i < 0 || i >= n_.region_count ? n_.region_count - 1 : i);
  }

  /// Runs one nested program, whose outputs become the results.
  void run_branch(int r) {
    run_region(r);
    for (const auto& e : c_.wires)
      for (const auto& out : e.outputs)
        if (out.region == r && results_[at(e.result)] != nullptr)
          spread(output(out), result(e), e.type.bytes());
  }

  /// Passes operands before the first iteration. An operand that already has the axes of the nested
  /// programs, and that they do not change, is passed without a copy.
  void give_operands() {
    for (const auto& e : c_.wires) {
      if (e.inputs.empty() || e.operand < 0 || e.operand_shift > 0) continue;
      const auto from = operand(e.operand);
      const bool as_it_is = from.axes == e.axes && (!e.carried() || passes_through(e));
      if (!as_it_is) spread(from, memory(e), e.type.bytes());
      give(e, as_it_is ? from.first : memory(e).first);
    }
  }
  /// Passes the index and the slices before each iteration of a scan.
  void give_slices(std::int64_t position) {
    for (const auto& e : c_.wires) {
      if (e.inputs.empty() || (e.operand >= 0 && e.operand_shift == 0)) continue;
      const auto to = memory(e);
      if (e.operand < 0) {
        const auto index = static_cast<std::int32_t>(position);
        std::memcpy(to.first, &index, sizeof index);
      } else {
        auto from = operand(e.operand);
        from.first += position * e.type.bytes();
        spread(from, to, e.type.bytes());
      }
      give(e, to.first);
    }
  }
  /// Copies outputs to their place in the stacked results after each iteration of a scan.
  void stack_outputs(std::int64_t position) {
    for (const auto& e : c_.wires) {
      if (e.result < 0 || e.result_shift == 0 || results_[at(e.result)] == nullptr) continue;
      auto to = result(e);
      to.first += position * e.type.bytes();
      spread(output(e.outputs[0]), to, e.type.bytes());
    }
  }
  /// Copies the outputs of a nested program to the carried values. It uses spare memory, since one
  /// carried value may be the next value of another.
  void carry(int r) {
    scratch& spare = w_.memory[0];
    spare.reset();
    std::vector<std::pair<const run_wire*, std::byte*>> next;
    for (const auto& e : c_.wires) {
      if (!e.carried() || passes_through(e)) continue;
      for (const auto& out : e.outputs) {
        if (out.region != r) continue;
        copies<std::byte> to = memory(e);
        to.first = spare.take(bytes_inside(e));
        spread(output(out), to, e.type.bytes());
        next.push_back({&e, to.first});
      }
    }
    for (const auto& [e, from] : next) std::memcpy(memory(*e).first, from, at(bytes_inside(*e)));
  }
  /// Copies carried values to results after the last iteration.
  void give_carried() {
    for (const auto& e : c_.wires)
      if (e.carried() && e.result >= 0 && !e.inputs.empty() && results_[at(e.result)] != nullptr)
        std::memcpy(results_[at(e.result)], input(e.inputs[0]), at(bytes_inside(e)));
  }

  void run_region(int r) {
    frame_of(r).run(space_of(r), threads_, [](const step&, workspace&) {});
  }

  /// True if no iteration changes a carried value.
  bool passes_through(const run_wire& e) const {
    for (const auto& out : e.outputs) {
      const frame& f = frame_of(out.region);
      const value_id root = f.plan_.root(f.p_.outputs[at(out.index)].value);
      bool same = false;
      for (const auto& in : e.inputs)
        same = same || (in.region == out.region && f.p_.inputs[at(in.index)] == root);
      if (!same) return false;
    }
    return true;
  }

  copies<const std::byte> operand(int i) const {
    const value_id x = f_.p_.operand(op_, i);
    return {w_.base[at(f_.plan_.root(x))], f_.plan_.axes(x), padded_bytes(f_.p_.type(x))};
  }
  copies<const std::byte> output(const wire_end& out) const {
    const frame& f = frame_of(out.region);
    const value_id v = f.p_.outputs[at(out.index)].value;
    return {space_of(out.region).base[at(f.plan_.root(v))], f.plan_.axes(v),
            padded_bytes(f.p_.type(v))};
  }
  copies<std::byte> result(const run_wire& e) const {
    return {results_[at(e.result)], e.axes, padded_bytes(f_.p_.type(n_.result + e.result))};
  }
  /// Returns the memory of the value that the nested programs read from a wire.
  copies<std::byte> memory(const run_wire& e) const {
    return {w_.carried[at(e.memory)].get(), e.axes, padded_bytes(e.type)};
  }
  std::int64_t bytes_inside(const run_wire& e) const {
    return f_.devices().copies(e.axes) * padded_bytes(e.type);
  }
  const std::byte*& input(const wire_end& in) const {
    return space_of(in.region).base[at(frame_of(in.region).p_.inputs[at(in.index)])];
  }
  void give(const run_wire& e, const std::byte* value) const {
    for (const auto& in : e.inputs) input(in) = value;
  }

  /// Returns a value that decides for all devices. Each device may have computed its own copy.
  ///
  /// Errors    R014 the value differs between devices
  const std::byte* shared(const copies<const std::byte>& x, std::size_t bytes,
                          std::string_view what) const {
    bool same = true;
    for (std::int64_t i = 1; i < f_.devices().copies(x.axes); ++i)
      same = same && std::memcmp(x.first, x.first + i * x.stride, bytes) == 0;
    const std::int64_t others = f_.devices().processes(x.axes);
    if (others > 1) {
      f_.transport_.now = {&f_.p_, op_};
      const std::vector<std::byte> all = gathered(f_.transport_, x.axes, x.first, bytes);
      for (std::int64_t i = 0; i < others; ++i)
        same = same && std::memcmp(x.first, all.data() + at(i) * bytes, bytes) == 0;
    }
    if (!same) throw error(differing(what));
    return x.first;
  }
  text differing(std::string_view what) const {
    text message = concat("R014 run: the ", what, " of ", n_.def->name);
    if (n_.result_count > 0) message << " (%" << value_names(f_.p_)[n_.result] << ')';
    message << " differs between devices: all have to take the same branches and iterations";
    return message;
  }

  /// Copies a value, or `bytes` of each of its copies, to one that varies over all of its axes and
  /// possibly more.
  void spread(const copies<const std::byte>& from, const copies<std::byte>& to,
              std::int64_t bytes) const {
    for (std::int64_t i = 0; i < f_.devices().copies(to.axes); ++i) {
      const std::int64_t j =
          f_.devices().copy_at(from.axes, f_.devices().coordinates_of(to.axes, i));
      std::memcpy(to.first + i * to.stride, from.first + j * from.stride, at(bytes));
    }
  }

  const frame& frame_of(int r) const { return *f_.nested_[at(c_.frames[at(r)])]; }
  workspace& space_of(int r) const { return *w_.nested[at(c_.frames[at(r)])]; }

  const frame& f_;
  op_id op_;
  const op_node& n_;
  const frame::control& c_;
  workspace& w_;
  thread_pool& threads_;
  std::vector<std::byte*> results_;  // null for results that are never read
};

inline void frame::run_control(const step& s, const control& c, workspace& w,
                               thread_pool& threads) const {
  control_flow(*this, s.op, c, w, threads).run();
}

}  // namespace partita::run_detail
