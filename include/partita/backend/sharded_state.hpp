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

/// A sharded tensor. This process holds the shards of its own devices.
struct sharded_array {
  std::string name;
  tensor_type global;  ///< without padding
  layout sharding;
  tensor_type local;  ///< of a shard, padding included
  int mesh = 0;       ///< of a pipeline: the mesh that has it, or -1: every process has all of it
  run_detail::distributed_array held;
  partita::mesh on;            ///< the mesh of `sharding`, axes split as its program has them
  std::int64_t first = 0;      ///< rank of the mesh's first process
  std::int64_t processes = 1;  ///< that share its devices

  /// The shards that this process holds, by distinct coordinate: one, on a process of one device;
  /// none, of a pipeline, on the processes of another mesh.
  const std::vector<array>& shards() const { return held.copies; }
};

/// What a run of a backend takes and returns: sharded arrays by name.
///
/// Errors    R004 no such value
class sharded_state {
 public:
  sharded_state() = default;
  explicit sharded_state(std::vector<sharded_array> values) : values_(std::move(values)) {}
  /// The outputs of a run; `inputs`: by output, the name of the input whose next value it is.
  sharded_state(std::vector<sharded_array> values,
                std::shared_ptr<const std::vector<std::string>> inputs)
      : values_(std::move(values)), inputs_(std::move(inputs)) {}

  const std::vector<sharded_array>& values() const { return values_; }
  /// By name.
  const sharded_array& operator[](std::string_view name) const {
    if (const sharded_array* found = find(name)) return *found;
    std::vector<std::string_view> names;
    for (const auto& each : values_) names.push_back(each.name);
    throw error(concat("R004 results: no value named \"", name, "\"; ", known_names(name, names)));
  }
  const sharded_array* find(std::string_view name) const {
    for (const auto& each : values_)
      if (each.name == name) return &each;
    return nullptr;
  }
  /// The state for the next run: outputs that are the next values of inputs have the names of
  /// these; the other outputs stay readable and are not passed on.
  sharded_state next() const {
    sharded_state s = *this;
    s.passed_on_ = true;
    for (std::size_t i = 0; inputs_ != nullptr && i < values_.size(); ++i)
      if (!(*inputs_)[i].empty()) s.values_[i].name = (*inputs_)[i];
    return s;
  }
  /// The value for an input; null if there is none.
  const sharded_array* for_input(std::string_view name) const {
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (values_[i].name == name && (inputs_ == nullptr || !(*inputs_)[i].empty()))
        return &values_[i];
    return nullptr;
  }
  /// True for what `next()` returned and for what was placed or loaded: a run may take it.
  bool is_input() const { return inputs_ == nullptr || passed_on_; }

 private:
  std::vector<sharded_array> values_;
  std::shared_ptr<const std::vector<std::string>> inputs_;  // null: the values are inputs
  bool passed_on_ = false;
};

/// What a process is asked for when a state is placed shard by shard.
struct shard_request {
  std::string_view name;  ///< of the input
  tensor_type global;
  run_detail::position begin;  ///< of the shard in the global array
  tensor_type local;           ///< of the elements that exist: at the end less than a whole shard
};

}  // namespace partita
