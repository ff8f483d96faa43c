/// The interface of kernels: the machine's side of an op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <partita/ir/program.hpp>
#include <partita/run/array.hpp>

namespace partita {

/// Memory that a kernel needs during one call; later calls reuse it.
class scratch {
 public:
  /// Returns at least `bytes` bytes, aligned like arrays, valid until the next `reset`.
  std::byte* take(std::int64_t bytes) {
    if (next_ == pieces_.size()) pieces_.push_back({});
    auto& piece = pieces_[next_++];
    if (piece.size < bytes || !piece.data) piece = {run_detail::allocate(bytes), bytes};
    return piece.data.get();
  }
  void reset() { next_ = 0; }

 private:
  struct piece {
    run_detail::buffer data;
    std::int64_t size = 0;
  };
  std::vector<piece> pieces_;
  std::size_t next_ = 0;
};

/// The arguments of a kernel. All buffers are row-major, 64-byte aligned and padded to full groups
/// of 16 elements, which may be read and written; the result does not overlap the operands.
struct kernel_context {
  std::span<const tensor_type> types;  ///< of the operands
  const tensor_type& result;           ///< of the first result
  std::span<const std::int64_t> attrs;
  std::span<const std::byte* const> operands;
  std::byte* out;  ///< the first result
  scratch& memory;
  std::span<const tensor_type> results = {};  ///< of all results
  std::span<std::byte* const> outs = {};      ///< all results
  const void* plan = nullptr;                 ///< what the planner returned; null without one

  template <class T>
  const T* operand(std::size_t i) const {
    return reinterpret_cast<const T*>(operands[i]);
  }
  template <class T>
  T* output() const {
    return reinterpret_cast<T*>(out);
  }
  template <class T>
  T* output(std::size_t i) const {
    return reinterpret_cast<T*>(outs[i]);
  }
};

/// Computes one op. Several threads may call it at a time; it must depend on its operands only.
using kernel_function = void (*)(const kernel_context&);
/// Computes once what a kernel derives from types and attributes. The buffers are null.
using kernel_planner = std::shared_ptr<const void> (*)(const kernel_context&);

/// A kernel for a user-defined op, or a replacement for one of the library: `run_options::kernels`.
///
/// ```cpp
/// const kernel_entry mine = {&def<my_op>, [](const kernel_context& c) { ... }};
/// ```
struct kernel_entry {
  const op_def* op = nullptr;
  kernel_function run = nullptr;
  kernel_planner plan = nullptr;
};

}  // namespace partita
