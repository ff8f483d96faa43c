/// A partitioned program that XLA compiles and runs on the devices of a client.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <partita/backend/checkpoint/save.hpp>
#include <partita/backend/stateful.hpp>
#include <partita/backend/xla/part.hpp>

namespace partita::xla {

using sharded_state = basic_sharded_state<sharded_array>;

/// Memory and costs of one compiled program. A pipeline has several.
struct compiled_program {
  std::string name;
  compiled_memory memory;
  std::vector<cost_figure> costs;
};

/// Runs a partitioned program on XLA: device i of the mesh is device i of the client; the meshes of
/// a pipeline have consecutive devices.
///
///   pt::xla::client gpus("/path/to/plugin.so", {.devices = 8});
///   pt::xla::executable run(step(), gpus);
///   auto state = run.place(w1, w2);
///   state = run(state, batch).next();
///
/// Calls return before the devices are done; a failure on a device is thrown when a result is read.
/// Results agree with `emulate` up to the rounding of XLA's kernels. An executable is for one
/// thread.
///
/// Inputs and outputs are in the memories that the program chooses for them (port_memories). If
/// several processes share the client, all of them make the executable and call it alike, with the
/// same global arrays; each keeps the shards of its own devices. This has not been tried on GPUs.
///
/// Errors    E004 the program needs more devices than the client has, E005 XLA refuses the program,
///           E006 a run or a copy fails, E007 out of memory on a device, E008 a value whose memory
///           a run has reused, E009 a device lacks the memory of an input or output, E010 several
///           processes share a pipeline, W001 and W002 as write_stablehlo; R001 to R004 and J005 as
///           every backend
class executable : public stateful_executable<executable, sharded_array> {
 public:
  executable(const partitioned& p, const client& c, const options& o = {}) {
    p.error.raise();
    part_ = std::make_unique<backend_detail::xla_mesh_part>(p, c.get(), o);
    find_states();
  }
  executable(const pipelined& p, const client& c, const options& o = {}) {
    p.error.raise();
    part_ = std::make_unique<backend_detail::xla_pipeline_part>(p, c.get(), o);
    find_states();
  }
  executable(const executable&) = delete;
  executable& operator=(const executable&) = delete;

  /// Returns what the compiled programs need on each device, as the plugin reports it.
  ///
  /// Errors    E006 the plugin has no such report
  std::vector<compiled_program> compiled() const {
    std::vector<compiled_program> all;
    for (const auto& [name, f] : part_->compiled()) all.push_back({name, f->memory(), f->costs()});
    return all;
  }
  /// Returns the global array; waits for the runs that compute it. If several processes share the
  /// client, all of them must call this unless the value is replicated.
  ///
  /// Errors    E006 a run or a copy failed, E007 out of memory, E008 the value is gone
  array whole(const sharded_array& x) const { return part_->whole(x); }
  /// Writes the inputs of a state as a checkpoint that every backend can load. The state is copied
  /// to host memory before the call returns; the files are written in the background.
  saving save(const std::string& path, const state& s, const checkpoint_options& o = {}) const {
    std::vector<checkpoint_array> arrays;
    for (const sharded_array& x : s.values()) {
      if (s.for_input(x.name) != &x) continue;
      const run_detail::distributed_array held = part_->on_host(x);
      const auto all = run_detail::device_set::all(x.on);
      checkpoint_array a{{text(std::string_view(x.name)), x.global.element, x.global.shape,
                          x.local.shape, x.sharding},
                         {},
                         &x.on};
      for (std::int64_t d = 0; d < x.on.devices(); ++d) {
        if (x.shards[static_cast<std::size_t>(d)] == nullptr) continue;  // of another process
        const auto k = all.copy_at(held.axes, backend_detail::device_coordinates(x.on, d));
        a.shards.push_back({d, held.copies[static_cast<std::size_t>(k)]});
      }
      arrays.push_back(std::move(a));
    }
    return save_checkpoint(path, part_->slots()[0].on, std::move(arrays), o, part_->group().peers);
  }

 private:
  friend class stateful_executable<executable, sharded_array>;
  static constexpr std::string_view label = "xla";

  const program& source() const { return part_->source(); }
  const std::vector<sharded_array>& slots() const { return part_->slots(); }
  sharded_array cut(const sharded_array& slot, const array& global) const {
    return part_->cut(slot, global);
  }
  template <class Make>
  sharded_array filled(const sharded_array& slot, const Make& make) const {
    return part_->filled(slot, make);
  }
  state run(std::vector<const sharded_array*> inputs) const {
    std::deque<sharded_array> moved;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!part_->fits(*inputs[i], slots()[i]))
        inputs[i] = &moved.emplace_back(cut(slots()[i], whole(*inputs[i])));
    return state(part_->run(inputs), next_inputs());
  }

  std::unique_ptr<backend_detail::xla_part> part_;
};

}  // namespace partita::xla
