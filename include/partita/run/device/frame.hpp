/// Programs ready to run: a plan, and one for each nested program.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <partita/run/device/control_wires.hpp>
#include <partita/run/device/plan.hpp>
#include <partita/run/memory/workspace.hpp>
#include <partita/run/transport/collective_run.hpp>

namespace partita::run_detail {

/// A program on a mesh, ready to run. It stores one copy of a value for each distinct coordinate
/// over the axes along which the value varies: copy i of value v starts at base[v] + i *
/// padded_bytes(type of v).
class frame {
 public:
  frame(const program& p, transport& t, std::span<const axis_set> inputs,
        std::span<const kernel_entry> own, bool fuse, bool outermost)
      : plan_(p, t.devices(), inputs, own, fuse, outermost),
        p_(p),
        transport_(t),
        mesh_(t.devices().mesh()) {
    for (const auto& s : plan_.steps()) {
      prepared_.emplace_back();
      prepare(s, prepared_.back(), own, fuse);
    }
    for (value_id v = 0; v < p_.value_count(); ++v)
      if (plan_.memory().handed_out(v)) handed_out_.push_back(v);
  }

  const partita::run_detail::plan& plan() const { return plan_; }
  const device_set& devices() const { return transport_.devices(); }

  std::unique_ptr<workspace> make_workspace(int threads) const {
    auto w = std::make_unique<workspace>();
    // One allocation, so that it uses huge pages; the offsets put slots of equal sizes in different
    // cache sets.
    std::int64_t size = 0, from = 0;
    for (auto bytes : plan_.memory().slots())
      size = saturating_add(size, saturating_add(bytes, alignment));
    w->slots = allocate(size);
    std::vector<const std::byte*> slots;
    for (auto bytes : plan_.memory().slots())
      slots.push_back(w->slots.get() + std::exchange(from, from + bytes + alignment));
    w->handed_out.resize(at(p_.value_count()));
    for (value_id v = 0; v < p_.value_count(); ++v) {
      const int slot = plan_.memory().slot(v);
      w->base.push_back(slot == memory_plan::no_slot ? nullptr : slots[at(slot)]);
    }
    w->memory.resize(at(threads));
    for (const auto& f : nested_) w->nested.push_back(f->make_workspace(threads));
    for (auto bytes : carried_bytes_) w->carried.push_back(allocate(bytes));
    return w;
  }
  std::int64_t workspace_bytes() const {
    std::int64_t n = 0;
    for (auto b : plan_.memory().slots()) n = saturating_add(n, b);
    for (auto b : carried_bytes_) n = saturating_add(n, b);
    for (const auto& f : nested_) n = saturating_add(n, f->workspace_bytes());
    return n;
  }
  /// The value that needs the most memory, here or in a nested program.
  struct large_value {
    const frame* where = nullptr;
    value_id value = -1;
    std::int64_t bytes = -1;
  };
  large_value largest() const {
    large_value found;
    for (value_id v = 0; v < p_.value_count(); ++v) {
      const std::int64_t bytes = plan_.memory().holds(v) ? plan_.memory().bytes(v) : -1;
      if (bytes > found.bytes) found = {this, v, bytes};
    }
    for (const auto& f : nested_)
      if (const large_value inner = f->largest(); inner.bytes > found.bytes) found = inner;
    return found;
  }
  /// Prints a value as in `"h" (add, tensor<4x8xf32>, 16 copies)`.
  void print_value(text& out, value_id v) const {
    const op_node& n = p_.op(p_.producer(v));
    std::string_view name = p_.name(v);
    for (int i = 0; i < p_.output_count() && name.empty(); ++i)
      if (p_.outputs[at(i)].value == v) name = p_.output_name(i);
    if (!name.empty()) out << '"' << name << "\" ";
    out << '(' << n.def->name << ", " << p_.type(v);
    if (plan_.memory().copies(v) > 1) out << ", " << plan_.memory().copies(v) << " copies";
    out << ')';
  }

  /// Runs all steps; `give_input(step, w)` sets the base of an input.
  template <class GiveInput>
  void run(workspace& w, thread_pool& threads, const GiveInput& give_input) const {
    for (value_id v : handed_out_) {
      w.handed_out[at(v)].renew(plan_.memory().bytes(v));
      w.base[at(v)] = w.handed_out[at(v)].now().get();
    }
    for (std::size_t k = 0; k < plan_.steps().size(); ++k) {
      const step& s = plan_.steps()[k];
      const prepared& made = prepared_[k];
      transport_.now = {&p_, s.op};
      switch (s.what) {
        case step::kind::input:
          give_input(s, w);
          break;
        case step::kind::kernel:
          run_kernel(s, made, w, threads);
          break;
        case step::kind::collective:
          run_collective(made, w, threads);
          break;
        case step::kind::group:
          run_group(s, made, w, threads);
          break;
        case step::kind::start:
          run_start(s, w);
          break;
        case step::kind::control:
          run_control(s, made.nested, w, threads);
          break;
      }
    }
  }

  /// Returns the memory that a step writes a root value to; null if nothing reads it.
  std::byte* place(value_id v, const workspace& w) const {
    return const_cast<std::byte*>(w.base[at(v)]);
  }
  /// Returns the copy of `x` for a device at `c`.
  const std::byte* copy_of(value_id x, const coordinates& c, const workspace& w) const {
    return w.base[at(plan_.root(x))] +
           devices().copy_at(plan_.axes(x), c) * padded_bytes(p_.type(x));
  }

 private:
  friend class control_flow;

  struct control {
    std::vector<run_wire> wires;
    std::vector<int> frames;  // in nested_
  };
  /// The location of a value, for copy i of a step: base[root] + i * stride.
  struct location {
    value_id root;
    std::int64_t stride;  // bytes; 0 if all copies of the step share one
    value_id other = -1;  // the value, if it varies over some axes of the step only
  };
  /// The parts of a step that depend on types only.
  struct prepared {
    std::int64_t copies = 1, pieces = 1, piece = 0;  // a group's elements are run in pieces
    std::vector<location> values = {};  // a kernel's operands and results, or those of a group
    std::vector<tensor_type> operands = {}, results = {};  // of a kernel
    std::shared_ptr<const void> kernel = nullptr;          // what its planner returned
    std::optional<collective_run> collective = {};
    control nested = {};
  };

  void prepare(const step& s, prepared& to, std::span<const kernel_entry> own, bool fuse) {
    const op_node& n = p_.op(s.op);
    to.copies = devices().copies(s.axes);
    if (s.what == step::kind::group) {
      const std::int64_t block = s.blocks.block();
      to.piece = std::max<std::int64_t>(1, piece_elements / block) * block;
      to.pieces = (s.elements + to.piece - 1) / to.piece;
      for (value_id v : s.blocks.values) to.values.push_back(locate(v, s));
    }
    if (s.what == step::kind::control) to.nested = enter(s.op, own, fuse);
    if (s.what != step::kind::kernel && s.what != step::kind::collective) return;
    for (value_id x : p_.operands(s.op)) {
      to.values.push_back(locate(x, s));
      to.operands.push_back(p_.type(x));
    }
    for (int r = 0; r < n.result_count; ++r) {
      to.values.push_back(locate(n.result + r, s));
      to.results.push_back(p_.type(n.result + r));
    }
    if (s.what == step::kind::collective) {
      to.collective.emplace(make_collective(s.op));
    } else if (s.kernel.plan != nullptr) {
      scratch none;
      to.kernel = s.kernel.plan(
          {to.operands, to.results[0], p_.attrs(s.op), {}, nullptr, none, to.results});
    }
  }
  location locate(value_id v, const step& s) const {
    const axis_set axes = plan_.axes(v);
    if (axes == s.axes) return {plan_.root(v), padded_bytes(p_.type(v))};
    return {plan_.root(v), 0, devices().copies(axes) > 1 ? v : -1};
  }
  /// Returns the addresses of the values of a step for its copy i.
  std::byte** addresses(const step& s, const prepared& made, std::int64_t i, const workspace& w,
                        scratch& memory) const {
    auto** to = reinterpret_cast<std::byte**>(
        memory.take(static_cast<std::int64_t>(made.values.size() * sizeof(std::byte*))));
    for (std::size_t j = 0; j < made.values.size(); ++j) {
      const location& l = made.values[j];
      to[j] = const_cast<std::byte*>(l.other >= 0
                                         ? copy_of(l.other, devices().coordinates_of(s.axes, i), w)
                                         : w.base[at(l.root)] + i * l.stride);
    }
    return to;
  }

  /// Prepares an op with nested programs: its wires, and a frame for each program.
  control enter(op_id o, std::span<const kernel_entry> own, bool fuse) {
    vec<axis_set> operands;
    for (value_id x : p_.operands(o)) operands.push_back(plan_.axes(x));
    control c{run_wires(p_, o, mesh_, operands), {}};
    for (auto& w : c.wires) {
      if (w.inputs.empty()) continue;
      w.memory = static_cast<int>(carried_bytes_.size());
      carried_bytes_.push_back(saturating_multiply(devices().copies(w.axes), padded_bytes(w.type)));
    }
    for (int r = 0; r < p_.op(o).region_count; ++r) {
      const program& nested = p_.region(o, r);
      c.frames.push_back(static_cast<int>(nested_.size()));
      nested_.push_back(std::make_unique<frame>(
          nested, transport_, input_axes(c.wires, r, nested.inputs.size()), own, fuse, false));
    }
    return c;
  }

  void run_kernel(const step& s, const prepared& made, workspace& w, thread_pool& threads) const {
    threads.parallel_for(made.copies, [&](int thread, std::int64_t i) {
      scratch& memory = w.memory[at(thread)];
      memory.reset();
      const std::byte* const* in = addresses(s, made, i, w, memory);
      std::byte* const* out = const_cast<std::byte* const*>(in + made.operands.size());
      s.kernel.run({made.operands,
                    made.results[0],
                    p_.attrs(s.op),
                    {in, made.operands.size()},
                    out[0],
                    memory,
                    made.results,
                    {out, made.results.size()},
                    made.kernel.get()});
    });
  }

  collective_run make_collective(op_id o) const {
    std::vector<collective_operand> operands;
    for (int r = 0; r < p_.op(o).result_count; ++r) {
      const value_id x = p_.operand(o, r), v = p_.op(o).result + r;
      operands.push_back({p_.type(x), p_.type(v), plan_.axes(x), plan_.axes(v)});
    }
    return {devices(), p_.collective_of(o), std::move(operands), &find_combine};
  }
  void run_collective(const prepared& made, workspace& w, thread_pool& threads) const {
    w.from.clear(), w.to.clear();
    for (std::size_t r = 0, n = made.results.size(); r < n; ++r) {
      w.from.push_back(w.base[at(made.values[r].root)]);
      w.to.push_back(place(made.values[made.operands.size() + r].root, w));
    }
    made.collective->run(transport_, w.from, w.to, threads, w.memory, w.messages);
  }

  /// Chunks of several blocks, so that threads also share a large array that has one copy.
  static constexpr std::int64_t piece_elements = std::int64_t{1} << 16;
  void run_group(const step& s, const prepared& made, workspace& w, thread_pool& threads) const {
    threads.parallel_for(made.copies * made.pieces, [&](int thread, std::int64_t i) {
      scratch& memory = w.memory[at(thread)];
      memory.reset();
      const std::int64_t begin = i % made.pieces * made.piece;
      s.blocks.run(addresses(s, made, i / made.pieces, w, memory), begin,
                   std::min(begin + made.piece, s.elements), memory);
    });
  }

  void run_start(const step& s, workspace& w) const {
    const value_id v = p_.op(s.op).result;
    std::byte* out = place(v, w);
    const std::int64_t distance = op::shard_start::distance(p_.attrs(s.op));
    const axis_list axes = op::shard_start::axes(p_.attrs(s.op));
    for (std::int64_t i = 0; i < devices().copies(s.axes); ++i) {
      const coordinates c = devices().coordinates_of(s.axes, i);
      std::int64_t n = 0;
      for (int a : axes) n = n * mesh_.size(a) + c.at[a];
      with_type(p_.type(v).element, [&]<class T>(std::type_identity<T>) {
        const T x = convert_element<T>(n * distance);
        std::memcpy(out + i * padded_bytes(p_.type(v)), &x, sizeof x);
      });
    }
  }

  /// Runs an op with nested programs; see control_flow.hpp.
  inline void run_control(const step& s, const control& c, workspace& w,
                          thread_pool& threads) const;

  partita::run_detail::plan plan_;
  const program& p_;
  transport& transport_;
  const mesh& mesh_;
  std::vector<prepared> prepared_;    // by step
  std::vector<value_id> handed_out_;  // roots
  std::vector<std::unique_ptr<frame>> nested_;
  std::vector<std::int64_t> carried_bytes_;
};

}  // namespace partita::run_detail
