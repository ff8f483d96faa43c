/// Executables: programs that are planned and ready to run.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <partita/run/collective.hpp>
#include <partita/run/plan.hpp>
#include <partita/run/results.hpp>
#include <partita/run/thread_pool.hpp>
#if !defined(PARTITA_SEPARATE_KERNELS)
#include <partita/run/kernels/table.hpp>
#endif

namespace partita {

/// How a program is run. None of it changes a bit of the results, save other kernels.
struct run_options {
  int threads = 1;
  bool fuse = true;  ///< elementwise chains block by block; else one op at a time
  std::vector<kernel_entry> kernels = {};  ///< for the user's own ops; found before the library's
};

namespace detail {

/// Memory of one run, kept for the next.
struct workspace {
  std::vector<buffer> slots;
  std::vector<buffer> handed_out;      // by value; used again once the user has dropped the array
  std::vector<const std::byte*> base;  // by root value: copy 0
  std::vector<scratch> memory;         // by thread
};

/// Source    one interpreter for source programs (a mesh without axes) and device programs
class interpreter {
 public:
  interpreter(device_program d, run_options options)
      : d_(std::move(d)),
        p_(d_.local),
        options_(std::move(options)),
        plan_(checked(d_), options_.kernels, options_.fuse),
        threads_(options_.threads > 1 ? options_.threads : 1) {
    plan_.error.raise();
    for (const auto& s : plan_.steps) {
      std::vector<tensor_type> types;
      for (value_id x : p_.operands(s.op)) types.push_back(p_.type(x));
      types_.push_back(std::move(types));
    }
    auto list = std::make_shared<std::vector<std::string>>();
    for (int i = 0; i < p_.output_count(); ++i) list->emplace_back(p_.output_name(i));
    names_ = std::move(list);
  }

  const device_program& source() const { return d_; }
  const std::shared_ptr<const std::vector<std::string>>& names() const { return names_; }
  std::int64_t workspace_bytes() const {
    std::int64_t n = 0;
    for (auto b : plan_.slot_bytes) n += b;
    return n;
  }

  std::vector<array> run(std::span<const array> inputs) {
    check(inputs);
    std::unique_ptr<workspace> w = borrow();
    for (std::size_t k = 0; k < plan_.steps.size(); ++k) run_step(k, inputs, *w);
    std::vector<array> out;
    for (int i = 0; i < p_.output_count(); ++i) out.push_back(output(i, inputs, *w));
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(w));
    return out;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  static const device_program& checked(const device_program& d) {
    d.local.error.raise();
    return d;
  }

  /// Errors    R001 number of arrays, R002 shape, R003 element type
  void check(std::span<const array> inputs) const {
    if (inputs.size() != d_.input_types.size()) {
      text message = concat("R001 run: ", inputs.size(), inputs.size() == 1 ? " array" : " arrays",
                            " given; the program has ", d_.input_types.size(), " inputs: ");
      append_list(message, p_.input_count(), [&](int i) { message << p_.input_name(i); });
      throw error(message);
    }
    for (int i = 0; i < p_.input_count(); ++i) {
      const tensor_type &have = inputs[at(i)].type(), &need = d_.input_types[at(i)];
      if (!(have.shape == need.shape))
        throw error(concat("R002 run: the array for input \"", p_.input_name(i), "\" has shape ",
                           have.shape, "; ", need.shape, " is needed"));
      if (have.element != need.element)
        throw error(concat("R003 run: the array for input \"", p_.input_name(i),
                           "\" has element type ", name_of(have.element), "; ",
                           name_of(need.element), " is needed; give another type or use as_type"));
    }
  }

  std::unique_ptr<workspace> borrow() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto w = std::move(idle_.back());
        idle_.pop_back();
        return w;
      }
    }
    auto w = std::make_unique<workspace>();
    for (auto bytes : plan_.slot_bytes) w->slots.push_back(allocate(bytes));
    w->handed_out.resize(at(p_.value_count()));
    w->base.assign(at(p_.value_count()), nullptr);
    w->memory.resize(at(threads_.size()));
    return w;
  }

  /// Where a step writes a value.
  std::byte* place(value_id v, workspace& w) {
    std::byte* p = nullptr;
    if (plan_.handed_out[at(v)]) {
      buffer& b = w.handed_out[at(v)];
      if (b.use_count() != 1) b = allocate(plan_.bytes(v));
      std::atomic_thread_fence(std::memory_order_acquire);
      p = b.get();
    } else if (plan_.slot[at(v)] >= 0) {
      p = w.slots[at(plan_.slot[at(v)])].get();
    }
    w.base[at(v)] = p;
    return p;
  }
  /// The copy of `x` that a device at `c` has.
  const std::byte* copy_of(value_id x, const coordinates& c, const workspace& w) const {
    return w.base[at(plan_.root[at(x)])] +
           copy_at(d_.mesh, plan_.axes[at(x)], c) * padded_bytes(p_.type(x));
  }

  void run_step(std::size_t k, std::span<const array> inputs, workspace& w) {
    const step& s = plan_.steps[k];
    const value_id v = p_.op(s.op).result;
    const std::int64_t copies = copies_over(d_.mesh, s.axes);
    if (s.what == step::kind::input) {
      if (s.axes == 0)
        w.base[at(v)] = inputs[at(s.input)].bytes();
      else
        slice_input(s, inputs[at(s.input)], place(v, w));
    } else if (s.what == step::kind::collective) {
      const value_id x = p_.operand(s.op, 0);
      const collective_call call{
          d_.mesh,    p_.op(s.op).def,   p_.attrs(s.op), p_.type(x),
          p_.type(v), plan_.axes[at(x)], s.axes,         w.base[at(plan_.root[at(x)])],
          place(v, w)};
      threads_.parallel_for(copies, [&](int thread, std::int64_t i) {
        w.memory[at(thread)].reset();
        run_collective(call, i, w.memory[at(thread)]);
      });
    } else if (s.what == step::kind::group) {
      run_group(s, copies, w);
    } else {
      std::byte* out = place(v, w);
      const std::int64_t stride = padded_bytes(p_.type(v));
      threads_.parallel_for(copies, [&](int thread, std::int64_t i) {
        const std::byte* few[8];
        std::vector<const std::byte*> many;
        const auto operands = p_.operands(s.op);
        const std::byte** in = few;
        if (operands.size() > 8) {
          many.resize(operands.size());
          in = many.data();
        }
        const coordinates c = coordinates_of(d_.mesh, s.axes, i);
        for (std::size_t j = 0; j < operands.size(); ++j) in[j] = copy_of(operands[j], c, w);
        scratch& memory = w.memory[at(thread)];
        memory.reset();
        s.run({types_[k],
               p_.type(v),
               p_.attrs(s.op),
               {in, operands.size()},
               out + i * stride,
               memory});
      });
    }
  }

  /// In pieces of some blocks, so that threads also share a large array that has one copy.
  void run_group(const step& s, std::int64_t copies, workspace& w) {
    constexpr std::int64_t piece = 64 * block_program::block;
    for (op_id o : s.members) {
      const value_id v = p_.op(o).result;
      if (plan_.slot[at(v)] >= 0 || plan_.handed_out[at(v)]) place(v, w);
    }
    const std::int64_t pieces = (s.elements + piece - 1) / piece;
    threads_.parallel_for(copies * pieces, [&](int thread, std::int64_t i) {
      scratch& memory = w.memory[at(thread)];
      memory.reset();
      const coordinates c = coordinates_of(d_.mesh, s.axes, i / pieces);
      const auto& values = s.blocks.values;
      auto** in = reinterpret_cast<std::byte**>(
          memory.take(static_cast<std::int64_t>(values.size() * sizeof(std::byte*))));
      for (std::size_t j = 0; j < values.size(); ++j)
        in[j] = const_cast<std::byte*>(copy_of(values[j], c, w));
      const std::int64_t begin = i % pieces * piece;
      s.blocks.run(in, begin, std::min(begin + piece, s.elements), memory);
    });
  }

  void slice_input(const step& s, const array& a, std::byte* out) {
    const layout& l = d_.inputs[at(s.input)];
    const tensor_type& local = p_.type(p_.op(s.op).result);
    threads_.parallel_for(copies_over(d_.mesh, s.axes), [&](int, std::int64_t i) {
      const coordinates c = coordinates_of(d_.mesh, s.axes, i);
      std::int64_t start[max_rank] = {};
      for (int d = 0; d < local.shape.rank; ++d)
        start[d] = collective_axes::piece_of(d_.mesh, l, d, c) * local.shape[d];
      copy_box(size_of(local.element), local.shape, a.shape(), start, a.bytes(), local.shape,
               nullptr, out + i * padded_bytes(local));
    });
  }

  /// Errors    R006 devices that should hold the same piece of an output do not
  array output(int index, std::span<const array> inputs, workspace& w) {
    const value_id v = p_.outputs[at(index)].value, r = plan_.root[at(v)];
    const layout& l = d_.outputs[at(index)];
    const tensor_type &global = d_.output_types[at(index)], &local = p_.type(v);
    const axis_set axes = plan_.axes[at(v)], cut = axes_of(d_.mesh, l);
    if (plan_.handed_out[at(r)] && cut == 0) return array(global, w.handed_out[at(r)]);
    if (axes == 0 && cut == 0) {  // an input
      const auto found = std::find(p_.inputs.begin(), p_.inputs.end(), r);
      return inputs[at(found - p_.inputs.begin())].reshaped(global.shape);
    }
    for (std::int64_t i = 0; (axes & ~cut) != 0 && i < copies_over(d_.mesh, axes); ++i) {
      const coordinates mine = coordinates_of(d_.mesh, axes, i);
      coordinates first = mine;
      for (int a = 0; a < d_.mesh.rank; ++a)
        if (!has_axis(cut, a)) first.at[a] = 0;
      if (std::memcmp(copy_of(v, mine, w), copy_of(v, first, w), at(local.bytes())) != 0)
        throw error(concat("R006 run: output \"", p_.output_name(index),
                           "\" differs between devices that should hold the same piece of it"));
    }
    array out(global, allocate(padded_bytes(global)));
    auto* to = const_cast<std::byte*>(out.bytes());
    for (std::int64_t i = 0; i < copies_over(d_.mesh, cut); ++i) {
      const coordinates c = coordinates_of(d_.mesh, cut, i);
      std::int64_t start[max_rank] = {};
      for (int d = 0; d < local.shape.rank; ++d)
        start[d] = collective_axes::piece_of(d_.mesh, l, d, c) * local.shape[d];
      copy_box(size_of(local.element), local.shape, local.shape, nullptr, copy_of(v, c, w),
               global.shape, start, to);
    }
    return out;
  }

  device_program d_;
  const program& p_;
  run_options options_;
  plan plan_;
  thread_pool threads_;
  std::vector<std::vector<tensor_type>> types_;  // by step: of the operands
  std::shared_ptr<const std::vector<std::string>> names_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<workspace>> idle_;
};

/// A source program as a program for a mesh without axes.
inline device_program as_device_program(const program& p) {
  device_program d;
  d.local = p;
  if (p.error) return d;
  for (int i = 0; i < p.input_count(); ++i) d.input_types.push_back(p.input_type(i));
  for (int i = 0; i < p.output_count(); ++i) d.output_types.push_back(p.output_type(i));
  d.inputs.resize(d.input_types.size(), layout{});
  d.outputs.resize(d.output_types.size(), layout{});
  return d;
}

}  // namespace detail

/// A program that was planned once and can run many times. Copies share the plan and the memory;
/// several threads may call one executable.
///
/// A device program runs on an emulated mesh inside this process: a value is held once per distinct
/// coordinate over the axes that it varies over, so what is replicated costs nothing.
///
/// Units     workspace_bytes() in bytes
/// Errors    R001 to R003 wrong arrays, R005 no kernel for an op, R006 an output that should be
///           replicated differs between devices; and what the program itself carries
class executable {
 public:
  explicit executable(const program& p, const run_options& options = {})
      : executable(detail::as_device_program(p), options) {}
  explicit executable(const device_program& d, const run_options& options = {})
      : impl_(std::make_shared<detail::interpreter>(d, options)) {}

  /// Global arrays in the order of the inputs; gives global arrays in the order of the outputs.
  std::vector<array> operator()(std::span<const array> inputs) const { return impl_->run(inputs); }
  std::vector<array> operator()(const std::vector<array>& inputs) const {
    return impl_->run(inputs);
  }
  /// Arrays, xtensor containers, scalars, vectors of arrays and results, flattened in order.
  template <class... Args>
  requires(sizeof...(Args) != 1 ||
           !(std::convertible_to<const Args&, std::span<const array>> && ...)) results
  operator()(const Args&... args) const {
    return detail::run_arguments(*this, args...);
  }

  const std::shared_ptr<const std::vector<std::string>>& output_names() const {
    return impl_->names();
  }
  /// Memory for everything between the inputs and the outputs.
  std::int64_t workspace_bytes() const { return impl_->workspace_bytes(); }

 private:
  std::shared_ptr<detail::interpreter> impl_;
};

/// Runs one op on arrays; `result` is its type.
///
/// Errors    R002, R003 an array does not fit the op, R005 no kernel
inline array run_op(const op_def& def, std::span<const array> operands,
                    std::span<const std::int64_t> attrs, const tensor_type& result,
                    const run_options& options = {}) {
  program p;
  std::vector<value_id> values;
  for (const array& a : operands) {
    values.push_back(p.append(partita::def<op::parameter>, {}, {}, a.type()));
    p.inputs.push_back(values.back());
  }
  p.outputs.push_back({p.append(def, values, attrs, result), {}});
  return executable(p, options)(operands).front();
}
/// Runs one op of a program on arrays.
inline array run_op(const program& p, op_id o, std::span<const array> operands,
                    const run_options& options = {}) {
  return run_op(*p.op(o).def, operands, p.attrs(o), p.type(p.op(o).result), options);
}

}  // namespace partita
