/// The kernel of op::reduce_precision.
#pragma once

#include <algorithm>
#include <cstdint>

#include <partita/run/kernels/context.hpp>

namespace partita::run_detail {

/// Rounds numbers to the exponent and mantissa bits of the attributes. `Bits` is the stored integer
/// type.
///
/// Source    XLA's EmitReducePrecisionIR
template <class Bits>
void reduce_precision_of(const kernel_context& c, int exponent, int mantissa) {
  const auto bit = [](std::int64_t i) { return static_cast<Bits>(Bits(1) << i); };
  const auto to_exponent = static_cast<int>(std::min<std::int64_t>(c.attrs[0], exponent));
  const auto to_mantissa = static_cast<int>(std::min<std::int64_t>(c.attrs[1], mantissa));
  const Bits sign = bit(exponent + mantissa), last = bit(mantissa - to_mantissa);
  const auto infinite = static_cast<Bits>(sign - bit(mantissa));
  // The exponent of normal numbers of the format is above the minimum and at most the maximum.
  const int bias = (1 << (exponent - 1)) - 1, range = (1 << (to_exponent - 1)) - 1;
  const auto least = static_cast<Bits>(static_cast<Bits>(bias - range) << mantissa);
  const auto greatest = static_cast<Bits>(static_cast<Bits>(bias + range) << mantissa);
  const bool narrower = to_exponent < exponent;
  const std::int64_t n = c.result.shape.elements();
  for (std::int64_t i = 0; i < n; ++i) {
    Bits x = c.operand<Bits>(0)[i];
    if (static_cast<Bits>(x & ~sign) <= infinite) {  // else NaN
      if (last > 1) {
        const auto up = static_cast<Bits>(last / 2 - 1 + ((x & last) != 0 ? 1 : 0));
        x = static_cast<Bits>((x + up) & ~(last - 1));
      }
      const auto scale = static_cast<Bits>(x & infinite);
      if (narrower && scale > greatest) x = static_cast<Bits>((x & sign) | infinite);
      if (narrower && scale <= least) x = static_cast<Bits>(x & sign);
    }
    c.output<Bits>()[i] = x;
  }
}

inline void reduce_precision_kernel(const kernel_context& c) {
  const dtype t = c.result.element;
  if (t == dtype::f64) return reduce_precision_of<std::uint64_t>(c, 11, 52);
  if (t == dtype::f32) return reduce_precision_of<std::uint32_t>(c, 8, 23);
  if (t == dtype::bf16) return reduce_precision_of<std::uint16_t>(c, 8, 7);
  if (t == dtype::f16) return reduce_precision_of<std::uint16_t>(c, 5, 10);
  throw error(concat("P001 internal error: reduce_precision of ", name_of(t), "; please report"));
}

}  // namespace partita::run_detail
