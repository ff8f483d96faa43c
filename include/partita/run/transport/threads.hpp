/// A transport between threads of one process, with one device for each thread. Threads read each
/// other's memory through messages only.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <partita/run/transport/transport.hpp>

namespace partita::run_detail {

/// The state that threads share: messages in flight, by sender and receiver.
class thread_mailbox {
 public:
  void send(std::int64_t from, std::int64_t to, const std::byte* data, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    boxes_[{from, to}].emplace_back(data, data + bytes);
    arrived_.notify_all();
  }
  /// Receives the next message of a thread.
  ///
  /// Errors    R017 the sender has ended (close() was called); internal error: the sizes differ
  void receive(std::int64_t from, std::int64_t to, std::byte* data, std::int64_t bytes) {
    std::unique_lock lock(mutex_);
    auto& box = boxes_[{from, to}];
    arrived_.wait(lock, [&] { return closed_ || !box.empty(); });
    if (box.empty())
      throw error(concat("R017 run: device ", to, " waits for device ", from, ", which has ended"));
    const std::vector<std::byte> got = std::move(box.front());
    box.pop_front();
    lock.unlock();
    if (std::cmp_not_equal(got.size(), bytes))
      throw error(concat("internal error: device ", to, " expects ", bytes, " bytes of device ",
                         from, ", which sent ", got.size(), "; please report it"));
    if (bytes > 0) std::memcpy(data, got.data(), got.size());
  }
  /// Ends all communication: threads that wait for a message get an error.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    arrived_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::deque<std::vector<std::byte>>> boxes_;
  bool closed_ = false;
};

/// The transport of one thread.
class thread_transport final : public transport {
 public:
  thread_transport(const device_set& devices, thread_mailbox& shared)
      : transport(devices), shared_(shared) {}

  ticket start_exchange(std::span<const message> sends,
                        std::span<const message> receives) override {
    for (const message& m : sends) shared_.send(devices().this_process(), m.peer, m.data, m.bytes);
    pending_[next_] = {receives.begin(), receives.end()};
    return next_++;
  }
  void finish(ticket t) override {
    for (const message& m : pending_.at(t))
      shared_.receive(m.peer, devices().this_process(), m.data, m.bytes);
    pending_.erase(t);
  }

 private:
  thread_mailbox& shared_;
  std::map<ticket, std::vector<message>> pending_;
  ticket next_ = 0;
};

}  // namespace partita::run_detail
