/// A partitioned program on an emulated mesh, with the interface of the other backends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <partita/backend/checkpoint/global_arrays.hpp>
#include <partita/backend/stateful.hpp>
#include <partita/run/pipeline.hpp>

namespace partita::emulated {

/// A tensor of the emulated devices, which the emulator keeps as one global array.
struct sharded_array {
  std::string name;
  tensor_type global;  ///< without padding
  layout sharding;
  tensor_type local;  ///< of a shard, padding included
  partita::mesh on;
  array value;
};
using sharded_state = basic_sharded_state<sharded_array>;

/// Runs a partitioned program for all devices of its meshes in this process, like `emulate`. A
/// program that is written for mpi::executable or xla::executable runs in a unit test with this
/// one.
///
///   pt::emulated::executable run(step());
///   auto state = run.place(w1, w2);
///   state = run(state, batch).next();
///
/// Errors    those of emulate; J005 the outputs of a run are passed without next()
class executable : public stateful_executable<executable, sharded_array> {
 public:
  explicit executable(const partitioned& p, const run_options& o = {}) : source_(p.source) {
    p.error.raise();
    const device_program& d = p.device;
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
    auto planned = std::make_shared<const partita::executable>(d, o);
    run_ = [planned](const std::vector<array>& x) { return (*planned)(x); };
    find_states();
  }
  explicit executable(const pipelined& p, const run_options& o = {}) : source_(p.source) {
    p.error.raise();
    const auto unsharded = [](std::string_view name, const tensor_type& t) {
      return sharded_array{std::string(name), t, {}, t, {}, {}};
    };
    for (int i = 0; i < source_.input_count(); ++i)
      slots_.push_back(unsharded(source_.input_name(i), source_.input_type(i)));
    for (int i = 0; i < source_.output_count(); ++i)
      outputs_.push_back(unsharded(source_.output_name(i), source_.output_type(i)));
    auto planned = std::make_shared<const executable_pipeline>(p, o);
    run_ = [planned](const std::vector<array>& x) { return (*planned)(x); };
    find_states();
  }
  executable(const executable&) = delete;
  executable& operator=(const executable&) = delete;

  /// Returns the global array.
  array whole(const sharded_array& x) const { return x.value; }

 private:
  friend class stateful_executable<executable, sharded_array>;
  static constexpr std::string_view label = "emulated";

  const program& source() const { return source_; }
  const std::vector<sharded_array>& slots() const { return slots_; }
  sharded_array cut(sharded_array slot, const array& global) const {
    slot.value = global;
    return slot;
  }
  template <class Make>
  sharded_array filled(sharded_array slot, const Make& make) const {
    const auto all = run_detail::device_set::all(slot.on);
    run_detail::distributed_array shards;
    shards.axes = axes_of(slot.on, slot.sharding);
    for (std::int64_t k = 0; k < all.copies(shards.axes); ++k)
      shards.copies.push_back(
          make(backend_detail::requested(slot, slot.on, all.coordinates_of(shards.axes, k))));
    slot.value =
        run_detail::resized(run_detail::joined(shards, slot.sharding, slot.on), slot.global.shape);
    return slot;
  }
  state run(const std::vector<const sharded_array*>& inputs) const {
    std::vector<array> x;
    for (const sharded_array* each : inputs) x.push_back(each->value);
    const std::vector<array> made = run_(x);
    std::vector<sharded_array> out = outputs_;
    for (std::size_t k = 0; k < out.size(); ++k) out[k].value = made[k];
    return state(std::move(out), next_inputs());
  }

  program source_;
  std::vector<sharded_array> slots_, outputs_;  // without values
  std::function<std::vector<array>(const std::vector<array>&)> run_;
};

}  // namespace partita::emulated
