/// Operands and result of a kernel in the element type and dimension order in which it computes.
#pragma once

#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/convert.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

/// Returns `n` elements in full groups of lanes, with 16-bit floats widened to binary32.
inline const std::byte* widened(dtype t, const std::byte* x, std::int64_t n, scratch& memory) {
  if (!is_half(t)) return x;
  std::byte* wide = memory.take(padded_bytes({dtype::f32, {n}}));
  const void* in[] = {x};
  widen_function(t)(round_up(n, lanes), in, wide);
  return wide;
}
/// Narrows elements from binary32 to a 16-bit float.
inline void narrow(dtype half, const std::byte* wide, std::int64_t n, std::byte* out) {
  const void* in[] = {wide};
  narrow_function(half)(round_up(n, lanes), in, out);
}

/// Operands and result of a kernel. 16-bit floats are widened to binary32 first and rounded once at
/// the end; all others are used in place.
class computed_operands {
 public:
  explicit computed_operands(const kernel_context& c)
      : type(is_half(c.result.element) ? dtype::f32 : c.result.element), c_(c), out_(c.out) {
    for (std::size_t i = 0; i < c.operands.size(); ++i)
      operands_[i] =
          widened(c.result.element, c.operands[i], c.types[i].shape.elements(), c.memory);
    if (is_half(c.result.element)) out_ = c.memory.take(padded_bytes({dtype::f32, c.result.shape}));
  }
  /// Stores the result; call it when the result is computed.
  void store() const {
    if (is_half(c_.result.element))
      narrow(c_.result.element, out_, c_.result.shape.elements(), c_.out);
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

/// Returns a tensor with its dimensions permuted and some of them reversed: a copy, or the tensor
/// itself if it already has that order.
inline const std::byte* in_order(dtype t, const shape& s, const int* order, const bool* reversed,
                                 const std::byte* x, scratch& memory) {
  const strides from(s);
  shape sorted;
  bool same = true;
  for (int i = 0; i < s.rank; ++i) {
    sorted.push_back(s[order[i]]);
    same = same && order[i] == i && !(reversed && reversed[i] && s[order[i]] > 1);
  }
  if (same) return x;
  const strides to(sorted);
  box b;
  std::int64_t start = 0;
  for (int i = 0; i < s.rank; ++i) {
    const std::int64_t stride = from[order[i]];
    const bool back = reversed && reversed[i];
    if (back) start += (sorted[i] - 1) * stride;
    b.push_back(sorted[i], back ? -stride : stride, to[i]);
  }
  std::byte* copy = memory.take(padded_bytes({t, s}));
  b.copy(size_of(t), x + start * size_of(t), copy);
  return copy;
}

}  // namespace partita::run_detail
