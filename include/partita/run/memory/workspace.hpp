/// The memory of a run.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <partita/run/buffer.hpp>
#include <partita/run/kernels/context.hpp>

namespace partita::run_detail {

/// The memory of a value that becomes an array of the user. It is reused once the user has dropped
/// that array. Two buffers, because a training step reads the arrays of the step before.
class returned_memory {
 public:
  void renew(std::int64_t bytes) {
    if (now_.use_count() > 1) std::swap(now_, before_);
    if (now_.use_count() != 1) now_ = allocate(bytes);
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  const buffer& now() const { return now_; }

 private:
  buffer now_, before_;
};

/// The memory of one run of a program, kept for the next run.
struct workspace {
  buffer slots;
  std::vector<returned_memory> handed_out;  // by value
  std::vector<const std::byte*> base;       // by root value: copy 0; null if it is not in memory
  std::vector<scratch> memory;              // by thread
  scratch messages;                         // messages that collectives send and receive
  std::vector<const std::byte*> from;       // the operands of the collective that runs
  std::vector<std::byte*> to;               // its results
  std::vector<std::unique_ptr<workspace>> nested;  // by nested program
  std::vector<buffer> carried;                     // by wire of the ops with nested programs
};

}  // namespace partita::run_detail
