/// The part of a pipeline that one process runs: its steps of the exported list, in order.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <partita/ir/print.hpp>
#include <partita/mpmd/exported.hpp>
#include <partita/mpmd/unit_text.hpp>
#include <partita/run/device/device_run.hpp>
#include <partita/run/executor.hpp>
#include <partita/run/transport/relayout.hpp>

namespace partita::run_detail {

/// The devices of a mesh, from the view of a process.
struct mesh_site {
  device_set devices;      ///< of this process, or, if it holds none, of another one
  std::int64_t first = 0;  ///< number of the mesh's first process
  bool mine = true;        ///< this process holds devices of the mesh
};

/// The functions of a pipeline that a process calls, by unit; null if another process calls it.
using pipeline_functions = std::vector<std::unique_ptr<device_run>>;

/// Makes a device run for each unit on the meshes of this process. `link(mesh)` returns the
/// transport among the devices of a mesh.
template <class Link>
pipeline_functions make_functions(const pipelined& p, const run_options& options, bool every_device,
                                  const std::vector<mesh_site>& sites, const Link& link) {
  pipeline_functions list;
  const auto all = static_cast<int>(p.units.size() + p.joint_functions.size());
  for (int f = 0; f < all; ++f) {
    const pipeline_unit& u = p.function(f);
    list.emplace_back();
    if (!sites[static_cast<std::size_t>(u.piece.mesh)].mine) continue;
    std::vector<axis_set> terms;
    for (const auto& v : u.takes) terms.push_back(every_device ? all_axes(u.device.mesh) : v.terms);
    list.back() = std::make_unique<device_run>(u.device, options, link(u.piece.mesh), terms);
  }
  return list;
}

/// Returns slice i of a stack (n, ...).
inline array slice_of(const array& stack, int i) {
  tensor_type t{stack.element(), {}};
  for (int d = 1; d < stack.shape().rank; ++d) t.shape.push_back(stack.shape()[d]);
  array out(t);
  const auto bytes = static_cast<std::size_t>(t.bytes());
  std::memcpy(out.mutable_bytes(), stack.bytes() + bytes * static_cast<std::size_t>(i), bytes);
  return out;
}

/// Returns the initial value of a sum over microbatches.
inline array initial_sum(const pipelined& p, const pipeline_buffer& b) {
  const auto c = static_cast<combiner>(p.values().attrs(p.values().producer(b.slot))[0]);
  array one(b.local);
  fill_with_identity(c == combiner::stack ? combiner::add : c, b.local, one.mutable_bytes());
  return one;
}

/// One run of a process's part. Calls run on the devices of its meshes. A copy between meshes sends
/// the blocks that both sides have in common. A buffer is freed after its last use.
class pipeline_part {
 public:
  /// `every_device`: each device holds its own values, even those that should be equal. `number`:
  /// the number of this process. `link`: the transport among all processes.
  pipeline_part(const pipelined& p, const exported_pipeline& e, const pipeline_functions& functions,
                const std::vector<mesh_site>& sites, transport& link, std::int64_t number,
                bool every_device)
      : p_(p),
        e_(e),
        functions_(functions),
        sites_(sites),
        link_(link),
        number_(number),
        every_device_(every_device),
        held_(e.buffers.size()) {
    for (const pipeline_buffer& b : e.buffers) terms_.push_back(b.terms);
  }

  const mesh_site& site(int mesh) const { return sites_[static_cast<std::size_t>(mesh)]; }
  /// Returns the current placement of a buffer.
  placement place_of(int buffer) const {
    const pipeline_buffer& b = e_.buffers[buffer];
    const mesh_site& s = site(b.mesh);
    return {s.devices, b.lies, axes(buffer), b.local, s.first, s.mine};
  }
  /// Sets the shards of an input that this process holds.
  void place(int input, distributed_array shards) { at(e_.inputs[input]) = std::move(shards); }
  void place_global(int input, const array& global) {
    const pipeline_buffer& b = e_.buffers[e_.inputs[input]];
    if (!site(b.mesh).mine) return;
    const auto& devices = site(b.mesh).devices;
    const array padded = resized(global, b.lies.global(b.local.shape, devices.mesh()));
    place(input, on_devices(cut(padded, b.lies, devices), b.mesh));
  }
  void run() {
    for (int k = 0; k < static_cast<int>(e_.steps.size()); ++k) {
      const pipeline_step& s = e_.steps[k];
      now_ = &s;
      std::vector<distributed_array> taken;
      const bool mine = s.is_call() && site(s.mesh).mine;
      for (std::size_t i = 0; mine && i < s.takes.size(); ++i)
        taken.push_back(operand(s.takes[i], s.mesh));
      note_terms(s);
      if (mine)
        call(s, taken);
      else if (!s.is_call())
        copy(s);
      for (const call_operand& each : s.takes) drop(each.buffer, k);
      drop(s.from, k);
    }
    while (!sent_.empty()) finish_first();
    now_ = nullptr;
  }
  /// Returns the shards of an output that this process holds.
  const distributed_array& output(int i) { return at(e_.outputs[i]); }
  /// Returns the current unit, or -1.
  int unit() const { return now_ != nullptr ? now_->unit : -1; }
  /// Describes the current step, for error messages.
  text doing() const {
    if (now_ == nullptr) return text("the end of the pipeline");
    text out;
    if (now_->is_call())
      out << mpmd_detail::unit_text(p_.function(now_->unit)) << " on mesh \""
          << p_.topology.name(now_->mesh) << '"';
    else
      out << "transfer of %" << value_names(p_.source)[p_.transfers[now_->transfer].value]
          << " from mesh \"" << p_.topology.name(e_.buffers[now_->from].mesh) << "\" to \""
          << p_.topology.name(e_.buffers[now_->to].mesh) << '"';
    if (now_->microbatch >= 0) out << ", microbatch " << now_->microbatch;
    return out;
  }

 private:
  distributed_array& at(int buffer) { return held_[static_cast<std::size_t>(buffer)]; }
  /// Returns the axes over which a buffer currently varies.
  axis_set axes(int buffer) const {
    const pipeline_buffer& b = e_.buffers[buffer];
    const mesh& m = p_.meshes[b.mesh];
    return every_device_ ? all_axes(m)
                         : axes_of(m, b.lies) | terms_[static_cast<std::size_t>(buffer)];
  }
  /// Records that a finished sum may be in the buffer of its terms. All processes record it alike.
  void note_terms(const pipeline_step& s) {
    const auto terms = [&](int buffer) -> axis_set& {
      return terms_[static_cast<std::size_t>(buffer)];
    };
    if (!s.is_call()) terms(s.to) = terms(s.from);
    for (std::size_t k = 0; s.is_call() && k < s.gives.size(); ++k)
      terms(s.gives[k].buffer) = p_.function(s.unit).gives[k].terms;
  }
  /// Makes a copy for each device, if each is to have its own.
  distributed_array on_devices(distributed_array given, int mesh) const {
    if (!every_device_) return given;
    const device_set& devices = site(mesh).devices;
    distributed_array out{{}, all_axes(devices.mesh())};
    for (std::int64_t i = 0; i < devices.copies(out.axes); ++i)
      out.copies.push_back(given.copies[static_cast<std::size_t>(
          devices.copy_at(given.axes, devices.coordinates_of(out.axes, i)))]);
    return out;
  }
  void drop(int buffer, int step) {
    if (buffer >= 0 && e_.buffers[buffer].last == step) at(buffer) = {};
  }

  void copy(const pipeline_step& s) {
    const pipeline_buffer &from = e_.buffers[s.from], &to = e_.buffers[s.to];
    if (!site(from.mesh).mine && !site(to.mesh).mine) return;
    auto& plan = plans_[s.transfer];
    if (plan == nullptr)
      plan = std::make_unique<relayout>(place_of(s.from), place_of(s.to), number_);
    auto move = plan->start(link_, at(s.from).copies);
    if (!plan->receives() && move.messages.ticket >= 0) {  // the receiver may accept it later
      sent_.push_back({plan.get(), std::move(move)});
      if (std::cmp_greater(sent_.size(), p_.channels.capacity)) finish_first();
      return;
    }
    at(s.to) = {plan->finish(link_, std::move(move)), axes(s.to)};
  }
  void finish_first() {
    sent_.front().plan->finish(link_, std::move(sent_.front().move));
    sent_.pop_front();
  }
  void call(const pipeline_step& s, const std::vector<distributed_array>& inputs) {
    std::vector<const distributed_array*> given;
    std::vector<axis_set> axes_of_outputs;
    for (const auto& each : inputs) given.push_back(&each);
    for (const call_operand& each : s.gives) axes_of_outputs.push_back(axes(each.buffer));
    auto outputs = (*functions_[static_cast<std::size_t>(s.unit)])(given, axes_of_outputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const call_operand& to = s.gives[k];
      if (to.slice < 0)
        at(to.buffer) = std::move(outputs[k]);
      else
        put_slices(to, outputs[k]);
    }
  }
  distributed_array operand(const call_operand& x, int mesh) {
    if (x.is_number()) return on_devices({{array(static_cast<std::int32_t>(x.slice))}, {}}, mesh);
    const pipeline_buffer& b = e_.buffers[x.buffer];
    distributed_array held = at(x.buffer);
    if (held.copies.empty() && b.accumulates) held = identity(x.buffer);
    if (x.slice >= 0)
      for (array& each : held.copies) each = slice_of(each, x.slice);
    return held;
  }
  distributed_array identity(int buffer) const {
    const pipeline_buffer& b = e_.buffers[buffer];
    const auto copies = static_cast<std::size_t>(site(b.mesh).devices.copies(axes(buffer)));
    return {std::vector<array>(copies, initial_sum(p_, b)), axes(buffer)};
  }
  void put_slices(const call_operand& to, const distributed_array& slices) {
    distributed_array& stack = at(to.buffer);
    if (stack.copies.empty()) {
      stack.axes = slices.axes;
      for (std::size_t k = 0; k < slices.copies.size(); ++k)
        stack.copies.emplace_back(e_.buffers[to.buffer].local);
    }
    for (std::size_t k = 0; k < slices.copies.size(); ++k) {
      const auto bytes = static_cast<std::size_t>(slices.copies[k].type().bytes());
      std::memcpy(stack.copies[k].mutable_bytes() + bytes * static_cast<std::size_t>(to.slice),
                  slices.copies[k].bytes(), bytes);
    }
  }

  const pipelined& p_;
  const exported_pipeline& e_;
  const pipeline_functions& functions_;
  const std::vector<mesh_site>& sites_;
  transport& link_;
  std::int64_t number_;
  bool every_device_;
  std::vector<distributed_array> held_;             // by buffer
  std::vector<axis_set> terms_;                     // by buffer
  std::map<int, std::unique_ptr<relayout>> plans_;  // by transfer
  struct sent_message {
    const relayout* plan;
    relayout::started move;
  };
  std::deque<sent_message> sent_;
  const pipeline_step* now_ = nullptr;
};

}  // namespace partita::run_detail
