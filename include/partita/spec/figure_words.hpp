/// The names of the figures of a device in texts.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/cost/device.hpp>
#include <partita/spec/lines.hpp>

namespace partita {

namespace spec_detail {

/// The name of a figure of a device in texts.
struct figure_word {
  std::string_view name;
  double device::*member;
  measure of;
};
constexpr measure bandwidth_like(std::string_view what) {
  return {what, measure::bytes_per_second, 1e18};
}
constexpr measure speed_like(std::string_view what) {
  return {what, measure::flop_per_second, 1e24};
}
constexpr measure part_like(std::string_view what) { return {what, measure::plain, 1}; }
inline constexpr figure_word figure_words[] = {
    {"memory", &device::memory, bytes_like("a number of bytes, like 16 GiB,")},
    {"bandwidth", &device::bandwidth, bandwidth_like("a speed, like 900 GB/s,")},
    {"flops", &device::f32, speed_like("a speed, like 61.5 TFLOP/s,")},
    {"flops.f64", &device::f64, speed_like("a speed, like 9.7 TFLOP/s,")},
    {"flops.f32", &device::f32, speed_like("a speed, like 61.5 TFLOP/s,")},
    {"flops.f16", &device::f16, speed_like("a speed, like 123 TFLOP/s,")},
    {"flops.i8", &device::i8, speed_like("a speed, like 394 TFLOP/s,")},
    {"vector", &device::vector, speed_like("a speed, like 2 TFLOP/s,")},
    {"kernel", &device::kernel, seconds_like("a time, like 3 us,")},
    {"window", &device::window, seconds_like("a time, like 3 ns,")},
    {"attained.products", &device::product_part, part_like("a part of the peak, like 0.8,")},
    {"attained.memory", &device::memory_part, part_like("a part of the peak, like 0.85,")},
    {"attained.links", &device::link_part, part_like("a part of the peak, like 0.8,")}};
inline constexpr std::int64_t most_devices = std::int64_t{1} << 40, most_rows = 1 << 20;
constexpr const figure_word* find_figure(std::string_view name) {
  for (const figure_word& w : figure_words)
    if (w.name == name) return &w;
  return nullptr;
}
/// Sets a figure. `flops` without an element type applies to all types.
constexpr void set_figure(device& d, const figure_word& w, double value) {
  if (w.name == "flops") d.f64 = d.f16 = d.i8 = 0;
  d.*w.member = value;
}

}  // namespace spec_detail

}  // namespace partita
