/// Values that stay on their devices between the runs of a backend.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <partita/run/device/shards.hpp>

namespace partita {

/// A sharded tensor, with the shards of this process's devices.
struct sharded_array {
  std::string name;
  tensor_type global;  ///< without padding
  layout sharding;
  tensor_type local;  ///< of a shard, padding included
  /// In a pipeline: the mesh that has the tensor, or -1 if every process has all of it.
  int mesh = 0;
  run_detail::distributed_array held;
  partita::mesh on;            ///< the mesh of `sharding`, with axes split as in its program
  std::int64_t first = 0;      ///< rank of the mesh's first process
  std::int64_t processes = 1;  ///< number of processes that share its devices

  /// Returns the shards that this process holds, one for each distinct coordinate. A process with
  /// one device has one. In a pipeline, processes of other meshes have none.
  const std::vector<array>& shards() const { return held.copies; }
};

/// The arguments and results of a run of a backend: sharded arrays by name.
///
/// Errors    R004 no such value
class sharded_state {
 public:
  sharded_state() = default;
  explicit sharded_state(std::vector<sharded_array> values) : values_(std::move(values)) {}
  /// Makes a state of the outputs of a run. `inputs` has, by output, the name of the input whose
  /// next value it is.
  sharded_state(std::vector<sharded_array> values,
                std::shared_ptr<const std::vector<std::string>> inputs)
      : values_(std::move(values)), inputs_(std::move(inputs)) {}

  /// Returns all values.
  const std::vector<sharded_array>& values() const { return values_; }
  /// Returns the value of this name.
  const sharded_array& operator[](std::string_view name) const {
    if (const sharded_array* found = find(name)) return *found;
    std::vector<std::string_view> names;
    for (const auto& each : values_) names.push_back(each.name);
    throw error(concat("R004 results: no value named \"", name, "\"; ", known_names(name, names)));
  }
  /// Returns the value of this name, or null.
  const sharded_array* find(std::string_view name) const {
    for (const auto& each : values_)
      if (each.name == name) return &each;
    return nullptr;
  }
  /// Returns the state for the next run. Outputs that are the next values of inputs get the names
  /// of these. Other outputs stay readable and are not passed on.
  sharded_state next() const {
    sharded_state s = *this;
    s.passed_on_ = true;
    for (std::size_t i = 0; inputs_ != nullptr && i < values_.size(); ++i)
      if (!(*inputs_)[i].empty()) s.values_[i].name = (*inputs_)[i];
    return s;
  }
  /// Returns the value for an input; null if the state lacks it.
  const sharded_array* for_input(std::string_view name) const {
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (values_[i].name == name && (inputs_ == nullptr || !(*inputs_)[i].empty()))
        return &values_[i];
    return nullptr;
  }
  /// True if a run accepts the state: one that `next()` returned, or that was placed or loaded.
  bool is_input() const { return inputs_ == nullptr || passed_on_; }

 private:
  std::vector<sharded_array> values_;
  std::shared_ptr<const std::vector<std::string>> inputs_;  // null: the values are inputs
  bool passed_on_ = false;
};

/// The shard that a process is asked for when a state is placed shard by shard.
struct shard_request {
  std::string_view name;  ///< of the input
  tensor_type global;
  run_detail::position begin;  ///< of the shard in the global array
  tensor_type local;  ///< of the elements that exist: smaller than a shard at the end of the array
};

}  // namespace partita
