/// The exchange of blocks of bytes between the processes that hold the devices of a mesh: the only
/// part of a run that uses the memory of more than one process.
///
/// Collectives are implemented once on top of it, see collective_run.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <partita/ir/program.hpp>
#include <partita/run/memory/device_set.hpp>

namespace partita::run_detail {

/// A block that is sent to a process or received from one.
struct message {
  std::int64_t peer = 0;  ///< process number, see device_set::process_of
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

/// The op that a process communicates for, as errors name it.
struct transport_use {
  const program* where = nullptr;
  op_id op = -1;
};

/// Moves blocks among the processes of a mesh. A group is the processes that differ along a set of
/// axes only; its members are numbered as in device_set::member.
///
/// Law       all processes of a group start the same transfers in the same order; programs keep it,
///           because conditions of loops and indices of branches are equal on all devices
///
/// Each primitive has a start and a finish. In between, the caller may compute, but not touch the
/// blocks. Bytes are neither read nor converted.
class transport {
 public:
  using ticket = int;

  explicit transport(const device_set& devices) : devices_(devices) {}
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;
  virtual ~transport() = default;

  /// Returns the devices of this process.
  const device_set& devices() const { return devices_; }

  /// Gathers the blocks of all members of the group on every member, in the order of members: all +
  /// i * bytes. The default sends messages.
  ///
  /// Errors    any exception ends the run
  virtual ticket start_gather(axis_set along, const std::byte* mine, std::int64_t bytes,
                              std::byte* all) {
    std::vector<message> out, in;
    for (std::int64_t i = 0; i < devices_.processes(along); ++i) {
      const std::int64_t peer = devices_.member(along, i).this_process();
      if (peer == devices_.this_process()) {
        std::memcpy(all + i * bytes, mine, static_cast<std::size_t>(bytes));
        continue;
      }
      out.push_back({peer, const_cast<std::byte*>(mine), bytes});
      in.push_back({peer, all + i * bytes, bytes});
    }
    return start_exchange(out, in);
  }
  /// Sends to and receives from any processes, at most one message in each direction for each peer.
  /// Both sides must agree on the number of bytes.
  virtual ticket start_exchange(std::span<const message> sends,
                                std::span<const message> receives) = 0;
  virtual void finish(ticket t) = 0;

  void gather(axis_set along, const std::byte* mine, std::int64_t bytes, std::byte* all) {
    finish(start_gather(along, mine, bytes, all));
  }
  void exchange(std::span<const message> sends, std::span<const message> receives) {
    finish(start_exchange(sends, receives));
  }
  /// True if the underlying engine reduces blocks of this type itself; the bits may then differ.
  virtual bool reduces(combiner, dtype) const { return false; }
  /// Combines the blocks of all members of the group on every member.
  virtual void reduce(axis_set, combiner, const tensor_type&, const std::byte*, std::byte*) {}

  transport_use now;  ///< set by the caller, for error messages

 private:
  device_set devices_;
};

/// Gathers the blocks of all members of a group in a vector.
inline std::vector<std::byte> gathered(transport& t, axis_set along, const std::byte* mine,
                                       std::size_t bytes) {
  std::vector<std::byte> all(static_cast<std::size_t>(t.devices().processes(along)) * bytes);
  t.gather(along, mine, static_cast<std::int64_t>(bytes), all.data());
  return all;
}

/// The transport of a process that holds all devices: it never sends.
class in_process final : public transport {
 public:
  explicit in_process(const mesh& m) : transport(device_set::all(m)) {}
  ticket start_exchange(std::span<const message>, std::span<const message>) override {
    throw error(concat("internal error: a process that holds all devices communicates; please ",
                       "report it"));
  }
  void finish(ticket) override {}
};

}  // namespace partita::run_detail
