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
#include <partita/run/memory/varying.hpp>
#include <partita/run/thread_pool.hpp>

namespace partita::run_detail {

/// The devices of a mesh whose pieces a process holds: all of them, or one.
///
/// A process that holds all has one copy of a value per distinct coordinate over the axes that the
/// value varies over, so what is replicated is computed once. One that holds one device has one
/// copy of everything.
class device_set {
 public:
  static device_set all(const mesh& m) { return device_set(m); }
  static device_set one(const mesh& m, const coordinates& c) {
    device_set s(m);
    s.only_ = true;
    s.here_ = c;
    return s;
  }

  const partita::mesh& mesh() const { return *mesh_; }
  /// How many copies of a value are held that varies over these axes.
  std::int64_t copies(axis_set axes) const { return only_ ? 1 : copies_over(*mesh_, axes); }
  /// The copy that the device at `c` has, which must be one of these.
  std::int64_t copy_at(axis_set axes, const coordinates& c) const {
    return only_ ? 0 : run_detail::copy_at(*mesh_, axes, c);
  }
  /// Coordinates of a device that has this copy.
  coordinates coordinates_of(axis_set axes, std::int64_t copy) const {
    return only_ ? here_ : run_detail::coordinates_of(*mesh_, axes, copy);
  }

 private:
  explicit device_set(const partita::mesh& m) : mesh_(&m) {}

  const partita::mesh* mesh_;
  bool only_ = false;
  coordinates here_;
};

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
