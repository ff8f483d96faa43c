/// Runs pipelines: all meshes in this process, each with its own values.
#pragma once

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <partita/mpmd/pipeline.hpp>
#include <partita/run/executor.hpp>
#include <partita/run/interpreter.hpp>

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

  void put(value_id v, int microbatch, distributed_array a, int uses) {
    if (uses != 0) at_.insert_or_assign(key(v, microbatch), slot{std::move(a), uses});
  }
  /// One use of a value.
  distributed_array take(value_id v, int microbatch) {
    const auto found = at_.find(key(v, microbatch));
    if (found == at_.end())
      throw error(concat("internal error: value ", v, " of microbatch ", microbatch,
                         " is not on its mesh; please report it"));
    if (found->second.uses == always || --found->second.uses > 0) return found->second.values;
    distributed_array last = std::move(found->second.values);
    at_.erase(found);
    return last;
  }
  distributed_array* find(value_id v, int microbatch) {
    const auto found = at_.find(key(v, microbatch));
    return found == at_.end() ? nullptr : &found->second.values;
  }

 private:
  struct slot {
    distributed_array values;
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

/// The axes of a mesh.
inline axis_set all_axes(const mesh& m) {
  axis_set all;
  for (int a = 0; a < m.rank; ++a) all.insert(a);
  return all;
}
/// A copy for each device.
inline distributed_array spread(const distributed_array& given, const mesh& m) {
  distributed_array out{{}, all_axes(m)};
  for (std::int64_t i = 0; i < copies_over(m, out.axes); ++i)
    out.copies.push_back(given.copies[static_cast<std::size_t>(
        copy_at(m, given.axes, coordinates_of(m, out.axes, i)))]);
  return out;
}

/// One run of a pipeline.
class pipeline_run {
 public:
  /// `every_device`: each device has values of its own, whatever should be the same.
  pipeline_run(const pipelined& p, const std::vector<std::unique_ptr<interpreter>>& functions,
               bool every_device = false)
      : p_(p),
        every_device_(every_device),
        functions_(functions),
        values_(static_cast<std::size_t>(p.topology.count())),
        next_(values_.size(), 0),
        sent_(p.lists.messages.size()) {
    count_uses();
  }

  void place_inputs(std::span<const array> inputs) {
    for (int i = 0; i < p_.source.input_count(); ++i) {
      const int m = p_.input_mesh[i];
      const value_id v = slot_of(p_.source.inputs[i]);
      const array whole = resized(inputs[static_cast<std::size_t>(i)], values().type(v).shape);
      put(m, v, -1, on_devices(cut(whole, p_.input_layout[i], p_.meshes[m]), m));
    }
    for (int t = 0; t < static_cast<int>(p_.transfers.size()); ++t) {
      const transfer& each = p_.transfers[t];
      const value_id v = slot_of(each.value);
      if (each.after < 0) put(each.to, v, -1, as_taken(t, on(each.from).take(v, -1)));
    }
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
    const int mesh = p_.output_mesh[i];
    return resized(joined(output_pieces(i), p_.output_layout[i], p_.meshes[mesh]),
                   p_.source.output_type(i).shape);
  }
  /// Of every device: one more dimension in front, along which lies what devices hold that should
  /// hold the same.
  array output_of_all(int i) {
    const mesh& m = p_.meshes[p_.output_mesh[i]];
    distributed_array pieces = output_pieces(i);
    shape whole{1}, piece{1};
    layout l;
    for (int a = 0; a < m.rank; ++a) {
      if (p_.output_layout[i].dim_of(a) >= 0) continue;
      l.push_back(a, 0);
      whole[0] *= m.size(a);
    }
    for (const auto& e : p_.output_layout[i]) l.push_back(e.axis, e.dim + 1);
    for (const auto extent : p_.source.output_type(i).shape) whole.push_back(extent);
    for (const auto extent : pieces.copies[0].shape()) piece.push_back(extent);
    for (array& each : pieces.copies) each = each.reshaped(piece);
    return resized(joined(pieces, l, m), whole);
  }

 private:
  distributed_array output_pieces(int i) {
    const value_id v = p_.output_slot[i];
    const int mesh = p_.output_mesh[i], microbatch = slot(v, -1);
    for (int t = 0; t < static_cast<int>(p_.transfers.size()); ++t) {
      const transfer& each =
          p_.transfers[t];  // to the caller's mesh, if nobody there took it before
      if (slot_of(each.value) == v && each.to == mesh && on(mesh).find(v, microbatch) == nullptr)
        put(mesh, v, microbatch, as_taken(t, on(each.from).take(v, microbatch)));
    }
    return on(mesh).take(v, microbatch);
  }

  const pipelined& p_;
  bool every_device_;
  const std::vector<std::unique_ptr<interpreter>>& functions_;
  std::vector<mesh_slots> values_;
  std::vector<std::size_t> next_;                         ///< by mesh: step of its list
  std::vector<std::unique_ptr<distributed_array>> sent_;  ///< by message, until it is taken
  struct use_count {
    int each = 0, later = 0, behind = 0;
    bool always = false;
  };
  std::vector<std::vector<use_count>> uses_;    ///< by mesh and slot of an iteration
  std::unordered_map<std::int64_t, int> held_;  ///< by channel
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr failed_;

  int meshes() const { return p_.topology.count(); }
  mesh_slots& on(int mesh) { return values_[static_cast<std::size_t>(mesh)]; }
  const program& values() const { return p_.values(); }
  value_id slot_of(value_id v) const { return p_.slot_of[v]; }
  axis_set axes(int mesh, const unit_value& v) const {
    if (every_device_) return all_axes(p_.meshes[mesh]);
    return axes_of(p_.meshes[mesh], v.lies) | v.terms;
  }
  /// What is sent, as it lies where it is taken: pieces are cut anew where meshes differ.
  distributed_array as_taken(int transfer, distributed_array given) const {
    const partita::transfer& t = p_.transfers[transfer];
    const transfer_layout& l = p_.sent_as[transfer];
    const mesh &from = p_.meshes[t.from], &to = p_.meshes[t.to];
    bool same = l.from == l.to;
    for (int a = 0; a < from.rank; ++a)
      if (every_device_ || l.from.dim_of(a) >= 0) same = same && from.size(a) == to.size(a);
    return same ? given : on_devices(cut(joined(given, l.from, from), l.to, to), t.to);
  }
  distributed_array on_devices(distributed_array given, int mesh) const {
    return every_device_ ? spread(given, p_.meshes[mesh]) : given;
  }
  /// Under which microbatch a value is kept.
  int slot(value_id v, int microbatch) const { return p_.microbatch_in(v, microbatch); }

  /// How often units take a value of an iteration, or it is sent: for each microbatch, for each but
  /// the last (what is left of a state), and behind the last. What the caller gets is kept, as are
  /// values of no iteration.
  void count_uses() {
    uses_.assign(values_.size(), std::vector<use_count>(values().types.size()));
    const auto uses = [&](int mesh, value_id v) -> use_count& {
      return uses_[static_cast<std::size_t>(mesh)][static_cast<std::size_t>(v)];
    };
    for (const auto& u : p_.units)
      for (const auto& v : u.takes) {
        use_count& mine = uses(u.piece.mesh, v.slot);
        ++(u.inside ? mine.each : mine.behind);
        if (const value_id next = p_.next_of(v.slot); next >= 0) ++uses(u.piece.mesh, next).later;
      }
    for (const transfer& t : p_.transfers) ++uses(t.from, slot_of(t.value)).each;
    for (const value_id v : p_.output_slot)
      for (int m = 0; m < meshes(); ++m) uses(m, v).always = true;
  }
  void put(int mesh, value_id v, int microbatch, distributed_array a) {
    const use_count& c = uses_[static_cast<std::size_t>(mesh)][static_cast<std::size_t>(v)];
    const bool last = microbatch == p_.microbatches - 1;
    const int uses =
        microbatch < 0 || c.always ? mesh_slots::always : c.each + (last ? c.behind : c.later);
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
    const value_id v = slot_of(t.value);
    const int i = slot(v, p_.lists.messages[index].microbatch);
    sent_[static_cast<std::size_t>(index)] = std::make_unique<distributed_array>(
        as_taken(p_.lists.messages[index].transfer, on(m).take(v, i)));
    return true;
  }
  bool receive(int m, int index) {
    auto& box = sent_[static_cast<std::size_t>(index)];
    if (box == nullptr) return false;
    const transfer& t = transfer_of(index);
    --held(t);
    const value_id v = slot_of(t.value);
    put(m, v, slot(v, p_.lists.messages[index].microbatch), std::move(*box));
    box.reset();
    return true;
  }

  distributed_array input(int m, value_id v, int i) {
    const op_node& n = values().op(values().producer(v));
    if (n.def->id == def<op::microbatch_index>.id)
      return on_devices({{array(static_cast<std::int32_t>(i))}, {}}, m);
    const slot_place at = p_.place_of(v, i);
    if (n.def->id != def<op::microbatch_slice>.id) return on(m).take(at.slot, at.microbatch);
    distributed_array stack = on(m).take(at.slot, at.microbatch);
    for (array& each : stack.copies) each = slice_of(each, i);
    return stack;
  }
  void call(int m, int index) {
    if (p_.follows(index)) return;
    const int number = p_.function_of(index);
    const pipeline_unit& u = p_.function(number);
    const std::size_t plain = u.takes.size() - u.sums.size();
    std::vector<distributed_array> inputs;
    std::vector<const distributed_array*> given;
    std::vector<axis_set> axes_of_outputs;
    for (std::size_t k = 0; k < u.takes.size(); ++k)
      inputs.push_back(k < plain ? input(m, u.takes[k].slot, p_.microbatch_taken(index, k))
                                 : accumulator(m, u, static_cast<int>(k)));
    for (const auto& each : inputs) given.push_back(&each);
    for (const auto& each : u.gives) axes_of_outputs.push_back(axes(m, each));
    std::vector<distributed_array> outputs =
        functions_[static_cast<std::size_t>(number)]->run_pieces(given, axes_of_outputs);
    const std::size_t sums = outputs.size() - u.sums.size(), stacks = sums - u.stacks.size();
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const value_id v = u.gives[k].slot;
      const int i = p_.microbatch_given(index, k);
      if (k < stacks)
        put(m, v, slot(v, i), std::move(outputs[k]));
      else if (k < sums)
        add_to_stack(m, v, i, outputs[k]);
      else
        put(m, v, -1, std::move(outputs[k]));
    }
    if (p_.joint(index) >= 0) drop_inner_uses(m, p_.joint_calls[p_.joint(index)]);
  }
  /// Parts of a joint call use what others of them give, or what the call took once.
  void drop_inner_uses(int m, const joint_call& joint) {
    std::set<std::pair<value_id, int>> made;
    for (const int c : joint.calls) {
      const pipeline_unit& u = p_.units[p_.unit_of[c]];
      const int i = p_.calls.calls[c].microbatch;
      for (std::size_t k = 0; k < u.takes.size() - u.sums.size(); ++k) {
        const slot_place at = p_.place_of(u.takes[k].slot, i);
        const bool first = made.insert({at.slot, at.microbatch}).second;
        if (!first && p_.repeated[at.slot] != 0 && on(m).find(at.slot, at.microbatch) != nullptr)
          on(m).take(at.slot, at.microbatch);
      }
      for (const auto& each : u.gives) made.insert({each.slot, i});
    }
  }
  distributed_array accumulator(int m, const pipeline_unit& u, int k) {
    const unit_value& v = u.takes[static_cast<std::size_t>(k)];
    if (const auto* known = on(m).find(v.slot, -1)) return *known;
    const auto c = static_cast<combiner>(values().attrs(values().producer(v.slot))[0]);
    const array start = filled(u.device.local.input_type(k), c);
    const auto copies = copies_over(p_.meshes[m], axes(m, v));
    return {std::vector<array>(static_cast<std::size_t>(copies), start), axes(m, v)};
  }
  static array filled(const tensor_type& t, combiner c) {
    program p;
    const std::int64_t bits[] = {
        identity_bits(c == combiner::stack ? combiner::add : c, t.element)};
    p.outputs.push_back({p.append(def<op::constant>, {}, bits, t), {}});
    return executable(p)(std::vector<array>{})[0];
  }
  void add_to_stack(int m, value_id v, int i, const distributed_array& slices) {
    distributed_array* stack = on(m).find(v, -1);
    if (stack == nullptr) {
      tensor_type t{slices.copies[0].element(), {}};
      t.shape.push_back(p_.microbatches);
      for (int d = 0; d < slices.copies[0].shape().rank; ++d)
        t.shape.push_back(slices.copies[0].shape()[d]);
      distributed_array fresh;
      fresh.axes = slices.axes;
      for (std::size_t k = 0; k < slices.copies.size(); ++k) fresh.copies.emplace_back(t);
      put(m, v, -1, std::move(fresh));
      stack = on(m).find(v, -1);
    }
    for (std::size_t k = 0; k < slices.copies.size(); ++k)
      put_slice(stack->copies[k], i, slices.copies[k]);
  }
};

}  // namespace run_detail

/// A pipeline that is run often: its functions are planned once.
class executable_pipeline {
 public:
  /// `every_device`: also what devices should hold the same is computed by each, see
  /// of_every_device().
  explicit executable_pipeline(pipelined p, const run_options& options = {},
                               bool every_device = false)
      : p_(std::make_shared<pipelined>(std::move(p))), every_device_(every_device) {
    p_->error.raise();
    const auto all = static_cast<int>(p_->units.size() + p_->joint_functions.size());
    for (int f = 0; f < all; ++f) {
      const pipeline_unit& u = p_->function(f);
      std::vector<axis_set> terms;
      for (const auto& v : u.takes)
        terms.push_back(every_device ? run_detail::all_axes(u.device.mesh) : v.terms);
      functions_.push_back(
          std::make_unique<run_detail::interpreter>(device_program(u.device), options, terms));
    }
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
    return results_of(inputs, mode, [](auto& run, int i) { return run.output(i); });
  }
  /// The same with one more dimension in front, along which lies what all devices hold that should
  /// hold the same.
  std::vector<array> of_every_device(std::span<const array> inputs) const {
    return results_of(inputs, mesh_mode::in_order,
                      [](auto& run, int i) { return run.output_of_all(i); });
  }
  std::vector<array> operator()(const std::vector<array>& inputs,
                                mesh_mode mode = mesh_mode::in_order) const {
    return (*this)(std::span<const array>(inputs), mode);
  }
  const std::shared_ptr<const std::vector<std::string>>& output_names() const { return names_; }

 private:
  template <class Output>
  std::vector<array> results_of(std::span<const array> inputs, mesh_mode mode,
                                const Output& output) const {
    run_detail::check_arrays(p_->source, types_, inputs);
    run_detail::pipeline_run run(*p_, functions_, every_device_);
    run.place_inputs(inputs);
    if (mode == mesh_mode::threads)
      run.run_in_threads();
    else
      run.run_in_order();
    std::vector<array> out;
    for (int i = 0; i < p_->source.output_count(); ++i) out.push_back(output(run, i));
    return out;
  }

  std::shared_ptr<pipelined> p_;
  bool every_device_ = false;
  std::vector<std::unique_ptr<run_detail::interpreter>> functions_;
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
