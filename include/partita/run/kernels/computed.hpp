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
  const strides by(s);
  strides from;
  shape sorted;
  bool same = true;
  for (int i = 0; i < s.rank; ++i) {
    const bool back = reversed && reversed[i] && s[order[i]] > 1;
    sorted.push_back(s[order[i]]);
    from[i] = back ? -by[order[i]] : by[order[i]];
    if (back) x += (sorted[i] - 1) * by[order[i]] * size_of(t);
    same = same && order[i] == i && !back;
  }
  if (same) return x;
  std::byte* copy = memory.take(padded_bytes({t, s}));
  box(sorted, from, strides(sorted)).copy(size_of(t), x, copy);
  return copy;
}

}  // namespace partita::run_detail
