/// Runs pipelines: all meshes in this process, each with its own values.
#pragma once

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <partita/mpmd/pipeline.hpp>
#include <partita/run/executor.hpp>

namespace partita {

/// How the meshes of a pipeline run.
enum class mesh_mode {
  in_order,  ///< one after the other in one thread, each as far as it gets
  threads    ///< each in a thread of its own
};

namespace run_detail {

/// What a mesh has: by value and microbatch (-1: of none), until it was used for the last time.
class mesh_slots {
 public:
  static constexpr int always = -1;  ///< in place of a number of uses: it is kept

  void put(value_id v, int microbatch, array a, int uses) {
    if (uses != 0) at_.insert_or_assign(key(v, microbatch), slot{std::move(a), uses});
  }
  /// One use of a value.
  array take(value_id v, int microbatch) {
    const auto found = at_.find(key(v, microbatch));
    if (found == at_.end())
      throw error(concat("internal error: value ", v, " of microbatch ", microbatch,
                         " is not on its mesh; please report it"));
    if (found->second.uses == always || --found->second.uses > 0) return found->second.values;
    array last = std::move(found->second.values);
    at_.erase(found);
    return last;
  }
  array* find(value_id v, int microbatch) {
    const auto found = at_.find(key(v, microbatch));
    return found == at_.end() ? nullptr : &found->second.values;
  }

 private:
  struct slot {
    array values;
    int uses = always;
  };
  std::unordered_map<std::int64_t, slot> at_;
  static std::int64_t key(value_id v, int microbatch) {
    return (static_cast<std::int64_t>(v) << 32) | static_cast<std::uint32_t>(microbatch + 1);
  }
};

/// Slice i of a stack (n, ...).
inline array slice_of(const array& stack, int i) {
  tensor_type t{stack.element(), {}};
  for (int d = 1; d < stack.shape().rank; ++d) t.shape.push_back(stack.shape()[d]);
  array out(t);
  const auto bytes = static_cast<std::size_t>(t.bytes());
  std::memcpy(out.mutable_bytes(), stack.bytes() + bytes * static_cast<std::size_t>(i), bytes);
  return out;
}
inline void put_slice(array& stack, int i, const array& slice) {
  const auto bytes = static_cast<std::size_t>(slice.type().bytes());
  std::memcpy(stack.mutable_bytes() + bytes * static_cast<std::size_t>(i), slice.bytes(), bytes);
}

/// One run of a pipeline.
class pipeline_run {
 public:
  pipeline_run(const pipelined& p, const std::vector<executable>& functions)
      : p_(p),
        functions_(functions),
        values_(static_cast<std::size_t>(p.topology.count())),
        next_(values_.size(), 0),
        sent_(p.lists.messages.size()) {
    count_uses();
  }

  void place_inputs(std::span<const array> inputs) {
    for (int i = 0; i < p_.source.input_count(); ++i)
      put(p_.input_mesh[i], p_.source.inputs[i], -1, inputs[static_cast<std::size_t>(i)]);
    for (const transfer& t : p_.transfers)
      if (t.after < 0) put(t.to, t.value, -1, on(t.from).take(t.value, -1));
  }
  void run_in_order() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int m = 0; m < meshes(); ++m)
        while (step(m)) moved = true;
    }
    check_ended();
  }
  void run_in_threads() {
    std::vector<std::thread> threads;
    for (int m = 0; m < meshes(); ++m) threads.emplace_back([this, m] { run_mesh(m); });
    for (auto& each : threads) each.join();
    if (failed_) std::rethrow_exception(failed_);
    check_ended();
  }
  array output(int i) {
    const value_id v = p_.source.outputs[i].value;
    const int mesh = p_.output_mesh[i], microbatch = slot(v, -1);
    for (const transfer& t : p_.transfers)  // to the caller's mesh, if nobody there took it before
      if (t.value == v && t.to == mesh && on(mesh).find(v, microbatch) == nullptr)
        put(mesh, v, microbatch, on(t.from).take(v, microbatch));
    return on(mesh).take(v, microbatch);
  }

 private:
  const pipelined& p_;
  const std::vector<executable>& functions_;
  std::vector<mesh_slots> values_;
  std::vector<std::size_t> next_;               ///< by mesh: step of its list
  std::vector<std::unique_ptr<array>> sent_;    ///< by message, until it is taken
  std::vector<std::vector<int>> uses_;          ///< by mesh and value of an iteration
  std::unordered_map<std::int64_t, int> held_;  ///< by channel
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr failed_;

  int meshes() const { return p_.topology.count(); }
  mesh_slots& on(int mesh) { return values_[static_cast<std::size_t>(mesh)]; }
  const program& source() const { return p_.source; }
  /// Under which microbatch a value is kept. (Behind a single one what it made is used as it is.)
  int slot(value_id v, int microbatch) const {
    if (p_.inside[source().producer(v)] == 0) return -1;
    return microbatch < 0 ? 0 : microbatch;
  }

  /// How often units take a value of an iteration, or it is sent. What the caller gets is kept, as
  /// are values of no iteration.
  void count_uses() {
    uses_.assign(values_.size(), std::vector<int>(source().types.size(), 0));
    const auto uses = [&](int mesh, value_id v) -> int& {
      return uses_[static_cast<std::size_t>(mesh)][static_cast<std::size_t>(v)];
    };
    for (const auto& u : p_.units)
      for (const value_id v : u.piece.inputs) ++uses(u.piece.mesh, v);
    for (const transfer& t : p_.transfers) ++uses(t.from, t.value);
    for (const auto& out : source().outputs)
      for (int m = 0; m < meshes(); ++m) uses(m, out.value) = mesh_slots::always;
  }
  void put(int mesh, value_id v, int microbatch, array a) {
    const int uses = microbatch < 0
                         ? mesh_slots::always
                         : uses_[static_cast<std::size_t>(mesh)][static_cast<std::size_t>(v)];
    on(mesh).put(v, microbatch, std::move(a), uses);
  }

  /// Does the next step of a mesh; false: there is none, or it has to wait.
  bool step(int m) {
    const auto& list = p_.lists.meshes[m];
    std::size_t& at = next_[static_cast<std::size_t>(m)];
    if (at == list.size()) return false;
    const mesh_step s = list[at];
    if (s.kind == mesh_step::call)
      call(m, s.index);
    else if (s.kind == mesh_step::send ? !send(m, s.index) : !receive(m, s.index))
      return false;
    ++at;
    return true;
  }
  void run_mesh(int m) {
    const auto& list = p_.lists.meshes[m];
    try {
      for (std::size_t at = next_[static_cast<std::size_t>(m)]; at < list.size(); ++at) {
        if (list[at].kind == mesh_step::call) {
          call(m, list[at].index);
          continue;
        }
        std::unique_lock lock(mutex_);
        const bool sends = list[at].kind == mesh_step::send;
        changed_.wait(lock, [&] {
          return failed_ || (sends ? send(m, list[at].index) : receive(m, list[at].index));
        });
        if (failed_) return;
        changed_.notify_all();
      }
      next_[static_cast<std::size_t>(m)] = list.size();
    } catch (...) {
      const std::unique_lock lock(mutex_);
      if (!failed_) failed_ = std::current_exception();
      changed_.notify_all();
    }
  }
  void check_ended() const {
    for (int m = 0; m < meshes(); ++m)
      if (next_[static_cast<std::size_t>(m)] < p_.lists.meshes[m].size())
        throw error(find_deadlock(p_.calls, p_.lists, p_.channels).message.view());
  }

  const transfer& transfer_of(int message) const {
    return p_.transfers[p_.lists.messages[message].transfer];
  }
  int& held(const transfer& t) { return held_[(std::int64_t{t.from} << 32) | t.to]; }
  bool send(int m, int index) {
    const transfer& t = transfer_of(index);
    if (held(t) >= p_.channels.capacity) return false;
    ++held(t);
    const int i = slot(t.value, p_.lists.messages[index].microbatch);
    sent_[static_cast<std::size_t>(index)] = std::make_unique<array>(on(m).take(t.value, i));
    return true;
  }
  bool receive(int m, int index) {
    auto& box = sent_[static_cast<std::size_t>(index)];
    if (box == nullptr) return false;
    const transfer& t = transfer_of(index);
    --held(t);
    put(m, t.value, slot(t.value, p_.lists.messages[index].microbatch), std::move(*box));
    box.reset();
    return true;
  }

  array input(int m, value_id v, int i) {
    const op_node& n = source().op(source().producer(v));
    if (n.def->id == def<op::microbatch_index>.id) return array(static_cast<std::int32_t>(i));
    if (n.def->id != def<op::microbatch_slice>.id) return on(m).take(v, slot(v, i));
    const value_id stack = source().operand(source().producer(v), 0);
    return slice_of(on(m).take(stack, -1), i);
  }
  void call(int m, int index) {
    const int unit = p_.unit_of[index], i = p_.calls.calls[index].microbatch;
    const pipeline_unit& u = p_.units[unit];
    std::vector<array> inputs;
    for (const value_id v : u.piece.inputs) inputs.push_back(input(m, v, i));
    for (const op_id o : u.sums) inputs.push_back(accumulator(m, o));
    const std::vector<array> outputs = functions_[static_cast<std::size_t>(unit)](inputs);
    std::size_t k = 0;
    for (const value_id v : u.piece.outputs) put(m, v, slot(v, i), outputs[k++]);
    for (const op_id o : u.stacks) add_to_stack(m, o, i, outputs[k++]);
    for (const op_id o : u.sums) put(m, source().op(o).result, -1, outputs[k++]);
  }
  array accumulator(int m, op_id o) {
    const value_id v = source().op(o).result;
    if (const array* known = on(m).find(v, -1)) return *known;
    const auto c = static_cast<combiner>(source().attrs(o)[0]);
    return filled(source().type(v), c);
  }
  static array filled(const tensor_type& t, combiner c) {
    program p;
    const std::int64_t bits[] = {
        identity_bits(c == combiner::stack ? combiner::add : c, t.element)};
    p.outputs.push_back({p.append(def<op::constant>, {}, bits, t), {}});
    return executable(p)(std::vector<array>{})[0];
  }
  void add_to_stack(int m, op_id o, int i, const array& slice) {
    const value_id v = source().op(o).result;
    array* stack = on(m).find(v, -1);
    if (stack == nullptr) {
      put(m, v, -1, array(source().type(v)));
      stack = on(m).find(v, -1);
    }
    put_slice(*stack, i, slice);
  }
};

}  // namespace run_detail

/// A pipeline that is run often: its functions are planned once.
class executable_pipeline {
 public:
  explicit executable_pipeline(pipelined p, const run_options& options = {})
      : p_(std::make_shared<pipelined>(std::move(p))) {
    p_->error.raise();
    for (const auto& u : p_->units) functions_.emplace_back(u.function, options);
    auto names = std::make_shared<std::vector<std::string>>();
    for (int i = 0; i < p_->source.output_count(); ++i)
      names->push_back(std::string(p_->source.output_name(i)));
    names_ = std::move(names);
    for (int i = 0; i < p_->source.input_count(); ++i) types_.push_back(p_->source.input_type(i));
  }

  /// Global arrays in, global arrays out, whatever the topology.
  ///
  /// Errors    R001 to R003 the arrays; O007 deadlock
  std::vector<array> operator()(std::span<const array> inputs,
                                mesh_mode mode = mesh_mode::in_order) const {
    run_detail::check_arrays(p_->source, types_, inputs);
    run_detail::pipeline_run run(*p_, functions_);
    run.place_inputs(inputs);
    if (mode == mesh_mode::threads)
      run.run_in_threads();
    else
      run.run_in_order();
    std::vector<array> out;
    for (int i = 0; i < p_->source.output_count(); ++i) out.push_back(run.output(i));
    return out;
  }
  std::vector<array> operator()(const std::vector<array>& inputs,
                                mesh_mode mode = mesh_mode::in_order) const {
    return (*this)(std::span<const array>(inputs), mode);
  }
  const std::shared_ptr<const std::vector<std::string>>& output_names() const { return names_; }

 private:
  std::shared_ptr<pipelined> p_;
  std::vector<executable> functions_;
  std::shared_ptr<const std::vector<std::string>> names_;
  std::vector<tensor_type> types_;
};

/// Runs a pipeline on emulated meshes: global arrays in, global arrays out.
template <class... Args>
results emulate(const pipelined& p, const Args&... args) {
  return run_detail::run_arguments(executable_pipeline(p), args...);
}
template <class... Args>
results emulate(const pipelined& p, mesh_mode mode, const Args&... args) {
  const executable_pipeline e(p);
  std::vector<array> arrays;
  (run_detail::flatten(arrays, args), ...);
  return results(e(arrays, mode), e.output_names());
}

}  // namespace partita
