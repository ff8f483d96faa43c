/// How devices exchange pieces: the only part of a run that sees more than one device's memory.
///
/// What is grouped (fusion/), where values lie (memory/) and how a device runs (device/) ask a
/// transport for two things: which devices this process holds, and that it carries out a
/// collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <partita/ir/collective.hpp>
#include <partita/run/kernels/context.hpp>
#include <partita/run/memory/device_set.hpp>
#include <partita/run/thread_pool.hpp>

namespace partita::run_detail {

/// A collective, and how its operand and result lie in the memory of this process: copy i of them
/// at i * padded_bytes(type).
struct exchange {
  const collective& what;
  tensor_type from, to;         ///< of a device's piece
  axis_set from_axes, to_axes;  ///< over which they vary
  const std::byte* operand;
  std::byte* result;
};

/// What carries collectives out. Not owned by the frames that use it.
///
/// Law: every process of a mesh calls `run` for the same collectives in the same order (conditions
/// of loops do not vary over the mesh). A group are the devices that differ only along
/// `what.along()`, numbered by `member_of`: a sub-communicator. The operands of other processes are
/// not addressable; `run` returns when the result is complete and the operand may be overwritten.
/// Reductions combine in the order of the members, so that every transport gives the same bits.
struct transport {
  device_set devices;
  void* self = nullptr;  ///< handed to `run`
  /// `memory`: one per thread of the pool.
  ///
  /// Errors    whatever it throws ends the run
  void (*run)(void* self, const device_set& devices, const exchange& e, thread_pool& threads,
              std::span<scratch> memory) = nullptr;
};

}  // namespace partita::run_detail
