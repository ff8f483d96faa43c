/// The time of products and kernels on a device.
///
/// Source    the roofline: Williams, Waterman, Patterson, CACM 2009
#pragma once

#include <cstdint>

#include <partita/cost/device.hpp>
#include <partita/ir/program.hpp>

namespace partita::cost_detail {

/// Returns the fraction of a dimension that is useful work in blocks of `tile`; the last block may
/// not be full.
constexpr double filled(std::int64_t extent, std::int64_t tile) {
  if (extent <= 0 || tile <= 1) return 1;
  const std::int64_t blocks = (extent + tile - 1) / tile;
  return static_cast<double>(extent) / static_cast<double>(blocks * tile);
}
/// Returns the fraction of the peak that a product of this shape attains. Dimensions fill blocks,
/// and a block of results is complete only after the pipeline of its sum has run full.
constexpr double product_efficiency(const product_shape& p, const device& d) {
  const double k = static_cast<double>(p.k), tile = static_cast<double>(d.tile);
  return filled(p.m, d.tile) * filled(p.n, d.tile) * (k / (k + tile / 2)) * d.product_part;
}

/// Returns the seconds to transpose operands and to assemble the rows of a product, on devices that
/// do so.
constexpr double gathering_seconds(const product_shape& p, dtype element, const device& d) {
  if (d.window == 0) return 0;
  const double size = static_cast<double>(size_of(element)) / d.stream();
  const double order = 2 * static_cast<double>(p.moved) * size;
  if (p.pieces == 0) return order;
  const double row = static_cast<double>(p.pieces) * d.window + static_cast<double>(p.k) * size;
  return order + static_cast<double>(p.batch) * static_cast<double>(p.m) * row;
}
/// Seconds of a product at the device's peak, and with the efficiency of its shape.
struct product_seconds {
  double ideal = 0, real = 0;
};
constexpr product_seconds seconds_of(const product_shape& shape, double flops, dtype element,
                                     const device& d) {
  const double ideal = flops / d.peak(element);
  return {ideal, ideal / product_efficiency(shape, d) + gathering_seconds(shape, element, d)};
}
/// Returns the seconds of a kernel from the seconds of its products, its other operations and its
/// bytes.
constexpr double seconds_of_kernel(double products, double flops, double bytes, const device& d) {
  const double vector = d.vector > 0 ? d.vector : d.peak(dtype::f32);
  const double busy = products + flops / vector, stream = bytes / d.stream();
  return d.kernel + (busy > stream ? busy : stream);
}

}  // namespace partita::cost_detail
