/// Reductions of blocks in a fixed order, so that every transport produces the same bits.
#pragma once

#include <cstring>

#include <partita/op/combine.hpp>
#include <partita/op/registry.hpp>
#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/convert.hpp>

namespace partita::run_detail {

/// Combines blocks in the order of the calls. 16-bit floats are accumulated in binary32. Blocks are
/// read in full groups of lanes.
class accumulator {
 public:
  /// `combine`: what find_combine returns for the combiner and the element type.
  accumulator(block_function combine, dtype t, std::int64_t elements, scratch& memory)
      : type_(t), n_(round_up(elements, lanes)), combine_(combine) {
    size_ = size_of(computed(t));
    for (auto& s : sum_) s = memory.take(n_ * size_ + alignment);
    if (is_half(t)) wide_ = memory.take(n_ * size_ + alignment);
  }
  void add(const std::byte* x) {
    if (is_half(type_)) {
      const void* in[] = {x};
      widen_function(type_)(n_, in, wide_);
      x = wide_;
    }
    if (first_) {
      std::memcpy(sum_[0], x, static_cast<std::size_t>(n_ * size_));
      first_ = false;
      return;
    }
    const void* in[] = {sum_[0], x};
    combine_(n_, in, sum_[1]);
    std::swap(sum_[0], sum_[1]);
  }
  /// Writes the result in full groups of lanes.
  void store(std::byte* out) {
    if (is_half(type_)) {
      const void* in[] = {sum_[0]};
      narrow_function(type_)(n_, in, out);
    } else {
      std::memcpy(out, sum_[0], static_cast<std::size_t>(n_ * size_));
    }
  }

 private:
  dtype type_;
  std::int64_t n_, size_;
  block_function combine_;
  std::byte* sum_[2] = {};
  std::byte* wide_ = nullptr;
  bool first_ = true;
};

inline void fill_with_identity(combiner c, const tensor_type& t, std::byte* out) {
  fill(t.element, identity_bits(c, t.element), t.shape.elements(), out);
}

/// True if combining a value with itself leaves it unchanged.
constexpr bool idempotent(combiner c) { return c != combiner::add && c != combiner::multiply; }

}  // namespace partita::run_detail
