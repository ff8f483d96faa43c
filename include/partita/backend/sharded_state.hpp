/// Values that stay on their devices between the runs of a backend.
#pragma once

#include <algorithm>
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

/// The arguments and results of a run of a backend: sharded arrays by name. `Array` is the type
/// that the backend keeps on its devices; it has a `name`.
///
/// Errors    R004 no such value
template <class Array>
class basic_sharded_state {
 public:
  basic_sharded_state() = default;
  explicit basic_sharded_state(std::vector<Array> values) : values_(std::move(values)) {}
  /// Makes a state of the outputs of a run. `inputs` has, by output, the name of the input whose
  /// next value it is.
  basic_sharded_state(std::vector<Array> values,
                      std::shared_ptr<const std::vector<std::string>> inputs)
      : values_(std::move(values)), inputs_(std::move(inputs)) {}

  /// Returns all values.
  const std::vector<Array>& values() const { return values_; }
  /// Returns the value of this name.
  const Array& operator[](std::string_view name) const {
    if (const Array* found = find(name)) return *found;
    std::vector<std::string_view> names;
    for (const auto& each : values_) names.push_back(each.name);
    throw error(concat("R004 results: no value named \"", name, "\"; ", known_names(name, names)));
  }
  /// Returns the value of this name, or null.
  const Array* find(std::string_view name) const {
    for (const auto& each : values_)
      if (each.name == name) return &each;
    return nullptr;
  }
  /// Returns the state for the next run. Outputs that are the next values of inputs get the names
  /// of these. Other outputs stay readable and are not passed on.
  basic_sharded_state next() const {
    basic_sharded_state s = *this;
    s.passed_on_ = true;
    for (std::size_t i = 0; inputs_ != nullptr && i < values_.size(); ++i)
      if (!(*inputs_)[i].empty()) s.values_[i].name = (*inputs_)[i];
    return s;
  }
  /// True if value i is one for an input: placed, loaded, or the next value of one.
  bool passes_on(std::size_t i) const { return inputs_ == nullptr || !(*inputs_)[i].empty(); }
  /// Returns the value for an input; null if the state lacks it.
  const Array* for_input(std::string_view name) const {
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (values_[i].name == name && passes_on(i)) return &values_[i];
    return nullptr;
  }
  /// True if a run accepts the state: one that `next()` returned, or that was placed or loaded.
  bool is_input() const { return inputs_ == nullptr || passed_on_; }

 private:
  std::vector<Array> values_;
  std::shared_ptr<const std::vector<std::string>> inputs_;  // null: the values are inputs
  bool passed_on_ = false;
};

using sharded_state = basic_sharded_state<sharded_array>;

/// The shard that a process is asked for when a state is placed shard by shard.
struct shard_request {
  std::string_view name;  ///< of the input
  tensor_type global;
  run_detail::position begin;  ///< of the shard in the global array
  tensor_type local;  ///< of the elements that exist: smaller than a shard at the end of the array
};

namespace backend_detail {
/// The request for the shard of an array at these coordinates of its mesh.
template <class Array>
shard_request requested(const Array& v, const mesh& m, const run_detail::coordinates& c) {
  shard_request r{v.name, v.global, run_detail::start_of(m, v.sharding, v.local.shape, c), v.local};
  for (int i = 0; i < v.local.shape.rank; ++i)
    r.local.shape[i] =
        std::clamp<std::int64_t>(v.global.shape[i] - r.begin.at[i], 0, v.local.shape[i]);
  return r;
}
}  // namespace backend_detail

}  // namespace partita
