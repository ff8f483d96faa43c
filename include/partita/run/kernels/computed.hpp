/// Operands and result of a kernel in the type in which it computes.
#pragma once

#include <algorithm>

#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/convert.hpp>

namespace partita::run_detail {

/// 16-bit floats are widened to binary32 first and rounded once in the end; all other operands and
/// results are used where they lie.
class computed_operands {
 public:
  explicit computed_operands(const kernel_context& c)
      : type(is_half(c.result.element) ? dtype::f32 : c.result.element), c_(c), out_(c.out) {
    for (std::size_t i = 0; i < c.operands.size(); ++i) {
      operands_[i] = c.operands[i];
      if (!is_half(c.result.element)) continue;
      std::byte* wide = c.memory.take(padded_bytes({dtype::f32, c.types[i].shape}));
      const void* in[] = {c.operands[i]};
      widen_function(c.result.element)(round_up(c.types[i].shape.elements(), lanes), in, wide);
      operands_[i] = wide;
    }
    if (is_half(c.result.element)) out_ = c.memory.take(padded_bytes({dtype::f32, c.result.shape}));
  }
  /// To be called when the result is computed.
  void store() const {
    if (!is_half(c_.result.element)) return;
    const void* in[] = {out_};
    narrow_function(c_.result.element)(round_up(c_.result.shape.elements(), lanes), in, c_.out);
  }
  template <class T>
  const T* operand(std::size_t i) const {
    return reinterpret_cast<const T*>(operands_[i]);
  }
  template <class T>
  T* output() const {
    return reinterpret_cast<T*>(out_);
  }

  dtype type;

 private:
  const kernel_context& c_;
  const std::byte* operands_[2] = {};
  std::byte* out_;
};

}  // namespace partita::run_detail
