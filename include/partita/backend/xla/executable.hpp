/// A partitioned program that XLA compiles and runs on the devices of one process.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <partita/backend/checkpoint/save.hpp>
#include <partita/backend/stateful.hpp>
#include <partita/backend/xla/compiled.hpp>
#include <partita/schedule/partitioned.hpp>
#include <partita/stablehlo/write_local.hpp>

namespace partita::xla {

/// A sharded tensor on the devices of a client.
struct sharded_array {
  std::string name;
  tensor_type global;  ///< without padding
  layout sharding;
  tensor_type local;  ///< of a shard, padding included
  partita::mesh on;   ///< the mesh of `sharding`, with axes split as in its program
  std::vector<std::shared_ptr<backend_detail::device_buffer>> shards;  ///< by device
};
using sharded_state = basic_sharded_state<sharded_array>;

struct options {
  /// Results reuse the memory of the inputs whose next values they are; the old state is gone then.
  bool donate = true;
};

/// Runs a partitioned program on XLA: device i of the mesh is device i of the client.
///
///   pt::xla::client gpus("/path/to/plugin.so", {.devices = 8});
///   pt::xla::executable run(step(), gpus);
///   auto state = run.place(w1, w2);
///   state = run(state, batch).next();
///
/// Calls return before the devices are done; a failure on a device is thrown when a result is read.
/// Results agree with `emulate` up to the rounding of XLA's kernels.
///
/// Errors    E004 the mesh has more devices than the client, E005 XLA refuses the program, E006 a
/// run
///           or a copy fails, E007 out of memory on a device, E008 a value whose memory a run has
///           reused, W001 and W002 as write_stablehlo; R001 to R004 and J005 as every backend
class executable : public backend_detail::stateful<executable, sharded_array> {
 public:
  executable(const partitioned& p, const client& c, const options& o = {})
      : p_(p), client_(c.get()), options_(o) {
    p_.error.raise();
    const device_program& d = p_.device;
    client_->need_devices(d.mesh.devices(), concat("mesh ", d.mesh).view());
    devices_.assign(client_->devices().begin(), client_->devices().begin() + d.mesh.devices());
    find_states();
    for (int i = 0; i < d.local.input_count(); ++i)
      slots_.push_back({std::string(d.local.input_name(i)),
                        d.input_types[i],
                        d.inputs[i],
                        d.local.input_type(i),
                        d.mesh,
                        {}});
    for (int i = 0; i < d.local.output_count(); ++i)
      outputs_.push_back({std::string(d.local.output_name(i)),
                          d.output_types[i],
                          d.outputs[i],
                          d.local.output_type(i),
                          d.mesh,
                          {}});
    const text module = write_stablehlo(d, donations());
    if (module.view().starts_with("error: ")) throw error(text(module.view().substr(7)));
    compiled_ = std::make_unique<backend_detail::pjrt_executable>(client_, module.view(), devices_);
  }
  executable(const executable&) = delete;
  executable& operator=(const executable&) = delete;

  /// What the compiled program needs on each device, as the plugin reports it.
  ///
  /// Errors    E006 the plugin has no such report
  compiled_memory memory() const { return compiled_->memory(); }
  std::vector<cost_figure> costs() const { return compiled_->costs(); }

  /// Returns the global array; waits for the runs that compute it.
  ///
  /// Errors    E006 a run or a copy failed, E007 out of memory, E008 the value is gone
  array whole(const sharded_array& x) const {
    return run_detail::resized(run_detail::joined(on_host(x), x.sharding, x.on), x.global.shape);
  }
  /// Writes the inputs of a state as a checkpoint that every backend can load. The state is copied
  /// to host memory before the call returns; files are written meanwhile.
  saving save(const std::string& path, const state& s, const checkpoint_options& o = {}) const {
    std::vector<checkpoint_array> arrays;
    for (const sharded_array& x : s.values()) {
      if (s.for_input(x.name) != &x) continue;
      const run_detail::distributed_array held = on_host(x);
      const run_detail::device_set all = run_detail::device_set::all(x.on);
      checkpoint_array a{{text(std::string_view(x.name)), x.global.element, x.global.shape,
                          x.local.shape, x.sharding},
                         {},
                         &x.on};
      for (std::int64_t device = 0; device < x.on.devices(); ++device)
        a.shards.push_back(
            {device, held.copies[at(all.copy_at(
                         held.axes, backend_detail::device_coordinates(x.on, device)))]});
      arrays.push_back(std::move(a));
    }
    return save_checkpoint(path, p_.device.mesh, std::move(arrays), o);
  }

 private:
  friend class backend_detail::stateful<executable, sharded_array>;
  static constexpr std::string_view label = "xla";
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  const program& source() const { return p_.source; }
  const std::vector<sharded_array>& slots() const { return slots_; }

  sharded_array cut(sharded_array v, const array& global) const {
    const array padded = run_detail::resized(global, v.sharding.global(v.local.shape, v.on));
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const auto c = backend_detail::device_coordinates(v.on, static_cast<std::int64_t>(d));
      const auto begin = run_detail::start_of(v.on, v.sharding, v.local.shape, c);
      v.shards.push_back(backend_detail::device_buffer::put(client_, devices_[d], nullptr, v.local,
                                                            padded.bytes(), padded.shape(),
                                                            begin.at, v.name));
    }
    return v;
  }
  template <class Make>
  sharded_array filled(sharded_array v, const Make& make) const {
    const run_detail::device_set all = run_detail::device_set::all(v.on);
    const axis_set axes = axes_of(v.on, v.sharding);
    std::vector<array> copies;
    for (std::int64_t k = 0; k < all.copies(axes); ++k)
      copies.push_back(make(backend_detail::requested(v, v.on, all.coordinates_of(axes, k))));
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const auto c = backend_detail::device_coordinates(v.on, static_cast<std::int64_t>(d));
      v.shards.push_back(backend_detail::device_buffer::put(
          client_, devices_[d], nullptr, v.local, copies[at(all.copy_at(axes, c))].bytes(),
          v.local.shape, nullptr, v.name));
    }
    return v;
  }
  /// The distinct shards, in host memory.
  run_detail::distributed_array on_host(const sharded_array& x) const {
    const run_detail::device_set all = run_detail::device_set::all(x.on);
    run_detail::distributed_array out;
    out.axes = axes_of(x.on, x.sharding);
    out.copies.resize(at(all.copies(out.axes)));
    std::vector<char> copying(out.copies.size(), 0);
    std::vector<PJRT_Event*> copied;
    for (std::int64_t device = 0; device < x.on.devices(); ++device) {
      const auto c = backend_detail::device_coordinates(x.on, device);
      const std::size_t k = at(all.copy_at(out.axes, c));
      if (std::exchange(copying[k], 1) != 0) continue;  // another device has the same
      out.copies[k] = array(x.local);
      copied.push_back(x.shards[at(device)]->get(out.copies[k].mutable_bytes(), x.local, x.name));
    }
    // All events are waited for even if one of them fails: the copies write to the arrays.
    std::exception_ptr failed;
    for (PJRT_Event* each : copied) try {
        client_->plugin().wait(each, "E006", "\"", std::string_view(x.name),
                               "\" is computed or copied");
      } catch (...) {
        if (failed == nullptr) failed = std::current_exception();
      }
    if (failed != nullptr) std::rethrow_exception(failed);
    return out;
  }

  state run(std::vector<sharded_array> inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const sharded_array& need = slots_[i];
      const bool same = inputs[i].sharding == need.sharding && inputs[i].local == need.local &&
                        inputs[i].shards.size() == devices_.size() &&
                        &inputs[i].shards[0]->client() == client_.get();
      if (!same) inputs[i] = cut(need, whole(inputs[i]));
    }
    std::vector<std::vector<PJRT_Buffer*>> given(devices_.size()),
        made(devices_.size(), std::vector<PJRT_Buffer*>(outputs_.size(), nullptr));
    for (std::size_t d = 0; d < devices_.size(); ++d)
      for (const sharded_array& x : inputs) {
        x.shards[d]->need_there(x.name);
        given[d].push_back(x.shards[d]->buffer());
      }
    compiled_->run(given, made);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (donated_[i] != 0)
        for (const auto& shard : inputs[i].shards) shard->donate();
    std::vector<sharded_array> out = outputs_;
    for (std::size_t k = 0; k < out.size(); ++k)
      for (std::size_t d = 0; d < devices_.size(); ++d)
        out[k].shards.push_back(
            std::make_shared<backend_detail::device_buffer>(client_, made[d][k]));
    return state(std::move(out), next_inputs());
  }

  /// Which inputs pass their memory to which outputs: those that are next states with the same
  /// shards.
  vec<argument_donation> donations() {
    const program& local = p_.device.local;
    vec<argument_donation> list(p_.device.inputs.size(), {});
    donated_.assign(slots_.size(), 0);
    if (!options_.donate) return list;
    const vec<int> reused = reused_inputs(p_.source);
    for (int k = 0; k < local.output_count(); ++k) {
      const int i = reused[k];
      if (i < 0 || local.input_type(i) != local.output_type(k)) continue;
      list[i] = {true, k};
      donated_[at(i)] = 1;
    }
    return list;
  }

  const partitioned p_;
  std::shared_ptr<const backend_detail::pjrt_client> client_;
  options options_;
  std::vector<PJRT_Device*> devices_;
  std::vector<sharded_array> slots_, outputs_;  // without shards
  std::vector<char> donated_;                   // by input
  std::unique_ptr<backend_detail::pjrt_executable> compiled_;
};

}  // namespace partita::xla
