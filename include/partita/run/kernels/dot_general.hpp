/// dot_general: matrix products of any element type.
#pragma once

#include <partita/run/kernels/computed.hpp>
#include <partita/run/kernels/product.hpp>

namespace partita::run_detail {

inline std::shared_ptr<const void> plan_dot_general(const kernel_context& c) {
  return std::make_shared<const dot_plan>(c.types[0].shape, c.types[1].shape, c.attrs);
}

/// 16-bit floats are multiplied and summed in binary32 and rounded once.
inline void dot_general_kernel(const kernel_context& c) {
  if (c.result.shape.elements() == 0) return;
  const auto here = c.plan == nullptr ? plan_dot_general(c) : nullptr;
  const dot_plan& p = *static_cast<const dot_plan*>(here ? here.get() : c.plan);
  if (p.depth == 0) {
    std::memset(c.out, 0, static_cast<std::size_t>(c.result.bytes()));
    return;
  }
  const computed_operands wide(c);
  // Sums and products of integers wrap: signed or not, they are the same bits.
  const auto run = [&]<class T>(std::type_identity<T>) {
    dot_kernel_of<T>(p, wide.operand<std::byte>(0), wide.operand<std::byte>(1),
                     wide.output<std::byte>(), c.memory);
  };
  if (wide.type == dtype::f32)
    run(std::type_identity<float>{});
  else if (wide.type == dtype::f64)
    run(std::type_identity<double>{});
  else
    with_bits(size_of(wide.type), run);
  wide.store();
}

}  // namespace partita::run_detail
