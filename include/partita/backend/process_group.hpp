/// The processes that share the devices of a backend, and what they have in common.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <partita/backend/checkpoint/save.hpp>
#include <partita/run/device/shards.hpp>

namespace partita {

/// Strings by key that all processes of a job see. Any thread may call the functions.
class key_value_store {
 public:
  virtual ~key_value_store() = default;
  virtual void put(const std::string& key, const std::string& value) = 0;
  /// Waits until some process puts the key. Returns nothing if none does before the time is over;
  /// 0 does not wait.
  virtual std::optional<std::string> get(const std::string& key,
                                         std::chrono::milliseconds timeout) = 0;
};

/// The processes of a job. `mpi::processes(world)` makes one (partita/mpi.hpp).
struct process_group {
  int processes = 1;
  checkpoint_peers peers = {};  ///< the number of this process, and an all-gather of strings
  std::shared_ptr<key_value_store> store = {};
};

namespace backend_detail {

/// Completes the distinct shards of an array on every process. All call it. The first device that
/// has a shard sends it; `x.shards` is null for devices of other processes.
template <class Array>
void exchange(run_detail::distributed_array& held, const Array& x, const process_group& group) {
  const tensor_type& shard = x.local;
  const mesh& m = x.on;
  const auto all = run_detail::device_set::all(m);
  std::vector<char> sent(held.copies.size(), 0);
  for (std::int64_t d = 0; d < m.devices(); ++d) {
    const auto k = static_cast<std::size_t>(all.copy_at(held.axes, device_coordinates(m, d)));
    if (std::exchange(sent[k], 1) != 0) continue;
    array made(shard);
    constexpr std::int64_t most = std::int64_t{1} << 28;  // bytes of a message
    for (std::int64_t first = 0; first < shard.bytes(); first += most) {
      const auto size = static_cast<std::size_t>(std::min(most, shard.bytes() - first));
      std::string mine;
      if (x.shards[static_cast<std::size_t>(d)] != nullptr)
        mine.assign(reinterpret_cast<const char*>(held.copies[k].bytes()) + first, size);
      for (const std::string& each : group.peers.all_gather(mine))
        if (!each.empty()) std::memcpy(made.mutable_bytes() + first, each.data(), size);
    }
    held.copies[k] = std::move(made);
  }
}

}  // namespace backend_detail

}  // namespace partita
