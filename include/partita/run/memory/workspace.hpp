/// The memory of a run.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <partita/run/buffer.hpp>
#include <partita/run/kernels/context.hpp>

namespace partita::run_detail {

/// The memory of one run of a program, kept for the next run.
struct workspace {
  std::vector<buffer> slots;
  std::vector<buffer> handed_out;      // by value; reused once the user has dropped the array
  std::vector<const std::byte*> base;  // by root value: copy 0
  std::vector<scratch> memory;         // by thread
  scratch messages;                    // messages that collectives send and receive
  std::vector<std::unique_ptr<workspace>> nested;  // by nested program
  std::vector<buffer> carried;                     // by wire of the ops with nested programs
};

}  // namespace partita::run_detail
