/// Programs ready to run: a plan, and one for each nested program.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <partita/run/device/control_wires.hpp>
#include <partita/run/device/plan.hpp>
#include <partita/run/memory/workspace.hpp>
#include <partita/run/transport/collective_run.hpp>

namespace partita::run_detail {

/// A fixed number of pointers; a few of them need no allocation.
template <class T>
class pointers {
 public:
  explicit pointers(std::size_t count) : count_(count) {
    if (count <= few) return;
    many_.resize(count);
    first_ = many_.data();
  }
  pointers(const pointers&) = delete;
  T& operator[](std::size_t i) { return first_[i]; }
  std::span<T> all() { return {first_, count_}; }

 private:
  static constexpr std::size_t few = 8;
  std::size_t count_;
  T few_[few];
  std::vector<T> many_;
  T* first_ = few_;
};

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
      std::vector<tensor_type> operands, results;
      for (value_id x : p_.operands(s.op)) operands.push_back(p_.type(x));
      for (int r = 0; r < p_.op(s.op).result_count; ++r)
        results.push_back(p_.type(p_.op(s.op).result + r));
      types_.push_back({std::move(operands), std::move(results)});
      controls_.push_back(s.what == step::kind::control ? enter(s.op, own, fuse) : control{});
      collectives_.push_back(-1);
      if (s.what != step::kind::collective) continue;
      collectives_.back() = static_cast<int>(collective_runs_.size());
      collective_runs_.push_back(make_collective(s.op));
    }
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
    const buffer all = allocate(size);
    for (auto bytes : plan_.memory().slots())
      w->slots.emplace_back(all, all.get() + std::exchange(from, from + bytes + alignment));
    w->handed_out.resize(at(p_.value_count()));
    w->base.assign(at(p_.value_count()), nullptr);
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
    for (std::size_t k = 0; k < plan_.steps().size(); ++k) {
      const step& s = plan_.steps()[k];
      transport_.now = {&p_, s.op};
      switch (s.what) {
        case step::kind::input:
          give_input(s, w);
          break;
        case step::kind::kernel:
          run_kernel(k, w, threads);
          break;
        case step::kind::collective:
          run_collective(s.op, collective_runs_[at(collectives_[k])], w, threads);
          break;
        case step::kind::group:
          run_group(s, w, threads);
          break;
        case step::kind::start:
          run_start(s, w);
          break;
        case step::kind::control:
          run_control(s, controls_[k], w, threads);
          break;
      }
    }
  }

  /// Returns the memory that a step writes a value to.
  std::byte* place(value_id v, workspace& w) const {
    std::byte* p = nullptr;
    if (plan_.memory().handed_out(v)) {
      buffer& b = w.handed_out[at(v)];
      if (b.use_count() != 1) b = allocate(plan_.memory().bytes(v));
      std::atomic_thread_fence(std::memory_order_acquire);
      p = b.get();
    } else if (plan_.memory().slot(v) != memory_plan::no_slot) {
      p = w.slots[at(plan_.memory().slot(v))].get();
    }
    w.base[at(v)] = p;
    return p;
  }
  /// Returns the copy of `x` for a device at `c`.
  const std::byte* copy_of(value_id x, const coordinates& c, const workspace& w) const {
    return w.base[at(plan_.root(x))] +
           devices().copy_at(plan_.axes(x), c) * padded_bytes(p_.type(x));
  }

 private:
  friend class control_flow;

  struct step_types {
    std::vector<tensor_type> operands, results;
  };
  struct control {
    std::vector<run_wire> wires;
    std::vector<int> frames;  // in nested_
  };

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

  void run_kernel(std::size_t k, workspace& w, thread_pool& threads) const {
    const step& s = plan_.steps()[k];
    const auto operands = p_.operands(s.op);
    const auto& types = types_[k];
    std::vector<std::byte*> out;
    for (std::size_t r = 0; r < types.results.size(); ++r)
      out.push_back(place(p_.op(s.op).result + static_cast<value_id>(r), w));
    threads.parallel_for(devices().copies(s.axes), [&](int thread, std::int64_t i) {
      const coordinates c = devices().coordinates_of(s.axes, i);
      pointers<const std::byte*> in(operands.size());
      for (std::size_t j = 0; j < operands.size(); ++j) in[j] = copy_of(operands[j], c, w);
      pointers<std::byte*> to(out.size());
      for (std::size_t r = 0; r < out.size(); ++r)
        to[r] = out[r] + i * padded_bytes(types.results[r]);
      scratch& memory = w.memory[at(thread)];
      memory.reset();
      s.run({types.operands, types.results[0], p_.attrs(s.op), in.all(), to[0], memory,
             types.results, to.all()});
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
  void run_collective(op_id o, const collective_run& what, workspace& w,
                      thread_pool& threads) const {
    const op_node& n = p_.op(o);
    pointers<const std::byte*> from(at(n.result_count));
    pointers<std::byte*> to(at(n.result_count));
    for (int r = 0; r < n.result_count; ++r) {
      from[at(r)] = w.base[at(plan_.root(p_.operand(o, r)))];
      to[at(r)] = place(n.result + r, w);
    }
    what.run(transport_, from.all(), to.all(), threads, w.memory, w.messages);
  }

  /// Chunks of several blocks, so that threads also share a large array that has one copy.
  static constexpr std::int64_t piece_elements = std::int64_t{1} << 16;
  void run_group(const step& s, workspace& w, thread_pool& threads) const {
    const std::int64_t piece =
        std::max<std::int64_t>(1, piece_elements / s.blocks.block()) * s.blocks.block();
    for (op_id o : s.members) {
      const value_id v = p_.op(o).result;
      if (plan_.memory().holds(v)) place(v, w);
    }
    const std::int64_t pieces = (s.elements + piece - 1) / piece;
    threads.parallel_for(devices().copies(s.axes) * pieces, [&](int thread, std::int64_t i) {
      scratch& memory = w.memory[at(thread)];
      memory.reset();
      const coordinates c = devices().coordinates_of(s.axes, i / pieces);
      const auto& values = s.blocks.values;
      auto** in = reinterpret_cast<std::byte**>(
          memory.take(static_cast<std::int64_t>(values.size() * sizeof(std::byte*))));
      for (std::size_t j = 0; j < values.size(); ++j)
        in[j] = const_cast<std::byte*>(copy_of(values[j], c, w));
      const std::int64_t begin = i % pieces * piece;
      s.blocks.run(in, begin, std::min(begin + piece, s.elements), memory);
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
      write_integer(p_.type(v).element, n * distance, out + i * padded_bytes(p_.type(v)));
    }
  }
  static void write_integer(dtype t, std::int64_t v, std::byte* to) {
    with_type(t, [&]<class T>(std::type_identity<T>) {
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
        const auto x = static_cast<T>(v);
        std::memcpy(to, &x, sizeof x);
      } else {
        throw error(concat("internal error: shard_start of ", name_of(t), "; please report"));
      }
    });
  }

  /// Runs an op with nested programs; see control_flow.hpp.
  inline void run_control(const step& s, const control& c, workspace& w,
                          thread_pool& threads) const;

  partita::run_detail::plan plan_;
  const program& p_;
  transport& transport_;
  const mesh& mesh_;
  std::vector<step_types> types_;  // by step
  std::vector<control> controls_;  // by step
  std::vector<int> collectives_;   // by step: in collective_runs_, or -1
  std::vector<collective_run> collective_runs_;
  std::vector<std::unique_ptr<frame>> nested_;
  std::vector<std::int64_t> carried_bytes_;
};

}  // namespace partita::run_detail
