/// Devices that programs run on, and the links between them.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/dtype.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/support/error.hpp>
#include <partita/support/text.hpp>

namespace partita {

/// The way in which the devices of a group reach each other.
enum class link_shape : std::uint8_t {
  switched,  ///< each sends to any other at full speed
  ring,      ///< each sends to its two neighbours only
  torus      ///< as `ring`; a collective over several axes uses the links of all of them at once
};
/// Returns the name of a shape, as in files of systems.
constexpr std::string_view name_of(link_shape t) {
  constexpr std::string_view names[] = {"switched", "ring", "torus"};
  return names[static_cast<int>(t)];
}

/// Bandwidth and latency with which a device sends to others of its group.
struct link {
  link_shape shape = link_shape::switched;
  double bandwidth = 0;  ///< bytes per second that a device sends, in all directions together
  double latency = 0;    ///< seconds for a message, however short

  friend constexpr bool operator==(const link&, const link&) = default;
};

/// The maximum length of a device's name.
inline constexpr int max_device_name = 31;

/// The peak figures of a device, and the fractions of them that programs attain. A structural type,
/// so that it can be a template argument: `check<step, a100_80>`.
///
/// Copy a device of the table to change its figures: `auto d = a100_80; d.memory *= 2;`.
struct device {
  char chars[max_device_name + 1] = {};
  double memory = 0;     ///< bytes
  double bandwidth = 0;  ///< bytes per second, read or written, of its memory
  // Peak FLOP/s of products (matrices, convolutions) by element type. 0: that of the next wider
  // type.
  double f64 = 0, f32 = 0, f16 = 0, i8 = 0;
  double vector = 0;      ///< elementwise operations per second
  link near;              ///< within a node, along one axis of the mesh
  link far;               ///< beyond a node
  std::int64_t node = 0;  ///< devices in a node; 0: all are near
  /// Products are computed in blocks of this size; smaller operands are padded.
  std::int64_t tile = 128;
  double kernel = 0;  ///< launch overhead: seconds of each kernel before it starts to work
  /// Seconds for each line of elements under a window that a convolution first copies into a
  /// matrix, in addition to its bytes and those of operands that are transposed. 0: convolutions
  /// read windows in place.
  double window = 0;
  // Fractions of the peak that large products, long streams and long messages attain.
  double product_part = 1, memory_part = 1, link_part = 1;

  /// Returns the name.
  constexpr std::string_view name() const {
    std::size_t n = 0;
    while (n < max_device_name && chars[n] != 0) ++n;
    return {chars, n};
  }
  /// Returns a copy with another name, truncated to `max_device_name` characters.
  constexpr device named(std::string_view s) const {
    device d = *this;
    for (int i = 0; i <= max_device_name; ++i)
      d.chars[i] = i < static_cast<int>(s.size()) && i < max_device_name
                       ? s[static_cast<std::size_t>(i)]
                       : '\0';
    return d;
  }
  /// Returns the attainable bytes per second of a sequential read or write.
  constexpr double stream() const { return bandwidth * memory_part; }
  /// Returns the peak FLOP/s of products of this element type.
  constexpr double peak(dtype t) const {
    const double by_width[] = {i8, f16, f32, f64};
    int i = is_floating(t)    ? size_of(t) == 8   ? 3
                                : size_of(t) == 4 ? 2
                                                  : 1
            : size_of(t) == 1 ? 0
                              : 2;
    while (i < 3 && by_width[i] == 0) ++i;
    while (i > 0 && by_width[i] == 0) --i;
    return by_width[i];
  }
  friend constexpr bool operator==(const device&, const device&) = default;
};

/// Checks that the figures which costs need are there.
///
/// Errors    D001 a required figure is missing (0) or negative
constexpr failure validate(const device& d) {
  failure f;
  const auto need = [&](std::string_view what, double v) {
    if (!(v > 0))
      f.record("D001", "device \"", d.name(), "\": ", what, " is missing; give a number above 0");
  };
  need("memory", d.memory);
  need("bandwidth", d.bandwidth);
  need("flops", d.peak(dtype::f32));
  for (double part : {d.product_part, d.memory_part, d.link_part})
    if (!(part > 0 && part <= 1))
      f.record("D001", "device \"", d.name(),
               "\": a fraction of the peak must be above 0 and at most 1");
  return f;
}

// ---- Devices on the market ----------------------------------------------------------------------

namespace cost_detail {
inline constexpr double giga = 1e9, tera = 1e12, micro = 1e-6, gib = 1073741824.;

struct gpu_figures {
  double memory_gb, bandwidth_gbs, f64_tflops, f32_tflops, f16_tflops, i8_tops, vector_tflops;
  double nvlink_gbs, network_gbs;  // sent by a device
};
/// Makes a GPU in nodes of eight that a switch connects. Attained fractions: large products 0.8 to
/// 0.85 of the peak, streams and messages 0.85 to 0.9. A kernel is launched in a few microseconds.
constexpr device gpu(std::string_view name, const gpu_figures& g) {
  device d;
  d.memory = g.memory_gb * giga;
  d.bandwidth = g.bandwidth_gbs * giga;
  d.f64 = g.f64_tflops * tera;
  d.f32 = g.f32_tflops * tera;
  d.f16 = g.f16_tflops * tera;
  d.i8 = g.i8_tops * tera;
  d.vector = g.vector_tflops * tera;
  d.near = {link_shape::switched, g.nvlink_gbs * giga, 3 * micro};
  d.far = {link_shape::switched, g.network_gbs * giga, 8 * micro};
  d.node = 8;
  d.kernel = 3 * micro;
  d.product_part = 0.8;
  d.memory_part = 0.85;
  d.link_part = 0.8;
  return d.named(name);
}
struct tpu_figures {
  double memory_gib, bandwidth_gbs, f32_tflops, f16_tflops, i8_tops, vector_tflops;
  double axis_gbs;  // sent by a device along one axis of the torus
};
constexpr device tpu(std::string_view name, const tpu_figures& t) {
  device d;
  d.memory = t.memory_gib * gib;
  d.bandwidth = t.bandwidth_gbs * giga;
  d.f32 = t.f32_tflops * tera;
  d.f16 = t.f16_tflops * tera;
  d.i8 = t.i8_tops * tera;
  d.vector = t.vector_tflops * tera;
  d.near = {link_shape::torus, t.axis_gbs * giga, 1 * micro};
  d.kernel = 1 * micro;
  d.product_part = 0.8;
  d.memory_part = 0.85;
  d.link_part = 0.8;
  return d.named(name);
}
}  // namespace cost_detail

/// Source    Jouppi et al., A domain-specific supercomputer for training deep neural networks, CACM
///           2020, table 3: of a chip 123 TFLOP/s (bf16), 32 GiB, 900 GB/s, 4 links of 82 GB/s each
///           way. A device is a core, half a chip; f32 is a third of bf16 (three passes)
inline constexpr device tpu_v3 = cost_detail::tpu("TPUv3", {16, 450, 20.5, 61.5, 61.5, 2, 82});
/// Source    Jouppi et al., TPU v4, ISCA 2023: 275 TFLOP/s, 32 GiB, 1200 GB/s, 6 links of 50 GB/s
inline constexpr device tpu_v4 = cost_detail::tpu("TPUv4", {32, 1200, 91.7, 275, 275, 4.3, 100});
/// Source    cloud.google.com/tpu/docs/v5e: 197 TFLOP/s, 394 TOP/s, 16 GB, 819 GB/s, 1600 Gbit/s
inline constexpr device tpu_v5e = cost_detail::tpu("TPUv5e", {14.9, 819, 65.7, 197, 394, 3, 100});
/// Source    cloud.google.com/tpu/docs/v5p: 459 TFLOP/s, 918 TOP/s, 95 GB, 2765 GB/s, 4800 Gbit/s
inline constexpr device tpu_v5p = cost_detail::tpu("TPUv5p", {88.5, 2765, 153, 459, 918, 7, 200});
/// GPUs with TF32 compute f32 products in it, as JAX does.
///
/// Source    NVIDIA V100 datasheet (SXM2, 32 GB): 125 / 15.7 / 7.8 TFLOP/s, 900 GB/s, NVLink
///           300 GB/s both ways; DGX-1: four links of 100 Gbit/s for eight GPUs
inline constexpr device v100 =
    cost_detail::gpu("V100", {32, 900, 7.8, 15.7, 125, 62, 15.7, 150, 6.25});
/// Source    NVIDIA A100 datasheet (SXM4): 312 / 156 / 19.5 TFLOP/s, 624 TOP/s, 1555 and 2039 GB/s,
///           NVLink 600 GB/s both ways; DGX A100: 200 Gbit/s for each GPU
inline constexpr device a100_40 =
    cost_detail::gpu("A100-40", {40, 1555, 19.5, 156, 312, 624, 19.5, 300, 25});
inline constexpr device a100_80 =
    cost_detail::gpu("A100-80", {80, 2039, 19.5, 156, 312, 624, 19.5, 300, 25});
/// Source    NVIDIA H100 and H200 datasheets (SXM, dense): 989.4 / 494.7 / 67 TFLOP/s, 1979 TOP/s,
///           3.35 and 4.8 TB/s, NVLink 900 GB/s both ways; 400 Gbit/s for each GPU
inline constexpr device h100 =
    cost_detail::gpu("H100", {80, 3350, 67, 494.7, 989.4, 1979, 67, 450, 50});
inline constexpr device h200 =
    cost_detail::gpu("H200", {141, 4800, 67, 494.7, 989.4, 1979, 67, 450, 50});
/// Source    NVIDIA DGX B200 datasheet (dense, an eighth): 2250 / 1125 / 37 TFLOP/s, 4500 TOP/s,
///           180 GB, 8 TB/s, NVLink 1800 GB/s both ways; 400 Gbit/s for each GPU
inline constexpr device b200 =
    cost_detail::gpu("B200", {180, 8000, 37, 1125, 2250, 4500, 75, 900, 50});

/// The figures of PartIR's appendix A.2, verbatim: a TPUv3 core of 16 GiB and 61.5 (f32) or 123
/// TFLOP/s whose chip has four links of 70 GB/s, and an A100 with NVLink of 600 GB/s.
inline constexpr device tpu_v3_partir =
    cost_detail::tpu("TPUv3-PartIR", {16, 450, 61.5, 123, 123, 2, 70});
inline constexpr device a100_40_partir = [] {
  device d = a100_40.named("A100-40-PartIR");
  d.near.bandwidth = 600 * cost_detail::giga;
  return d;
}();

/// All devices above, as specifications of systems find them by name.
inline constexpr const device* device_table[] = {
    &tpu_v3,  &tpu_v4, &tpu_v5e, &tpu_v5p, &v100,          &a100_40,
    &a100_80, &h100,   &h200,    &b200,    &tpu_v3_partir, &a100_40_partir};

/// Returns the device of the table with this name, or null.
constexpr const device* find_device(std::string_view name) {
  for (const device* d : device_table)
    if (d->name() == name) return d;
  return nullptr;
}

// ---- Links of a mesh ----------------------------------------------------------------------------

/// The devices of a mesh, all of one kind, and the links along its axes. An axis whose link has
/// bandwidth 0 uses the device's own link: near or far, depending on whether neighbouring device
/// numbers share a node.
struct machine {
  partita::device device;
  link told[max_axes] = {};  ///< explicit links, by axis of the user's mesh

  constexpr machine() = default;
  constexpr machine(const partita::device& d) : device(d) {}
};

namespace cost_detail {

/// A step of a collective over one link that reaches `members` devices.
struct hop {
  link over;
  std::int64_t members = 1;
  int axis = 0;
};
/// The steps along the axes of a collective: at most two for each axis, within a node and beyond
/// it.
struct hop_list {
  hop hops[2 * max_axes];
  int count = 0;
  constexpr void push_back(const hop& h) {
    if (h.members > 1) hops[count++] = h;
  }
  constexpr const hop* begin() const { return hops; }
  constexpr const hop* end() const { return hops + count; }
};

/// Adds the hops along an axis of a mesh, which may be part of a split axis. The hop beyond the
/// node comes first, since small messages matter most there.
constexpr void add_hops(const machine& on, const mesh& m, int axis, hop_list& list) {
  const int whole = m.find(m.name(axis));
  const std::int64_t size = m.size(axis), node = on.device.node;
  if (whole >= 0 && on.told[whole].bandwidth > 0)
    return list.push_back({on.told[whole], size, axis});
  std::int64_t stride = 1;  // of device numbers along the axis
  for (int i = m.rank; i-- > 0 && m.order[i] != axis;)
    stride = saturating_multiply(stride, m.size(m.order[i]));
  const bool all_near = node == 0 || saturating_multiply(stride, size) <= node;
  const std::int64_t near = all_near ? size
                            : stride < node && node % stride == 0 && size % (node / stride) == 0
                                ? node / stride
                                : 1;
  list.push_back({on.device.far, size / near, axis});
  list.push_back({on.device.near, near, axis});
}

}  // namespace cost_detail

/// Checks a device and its links for a mesh.
///
/// Errors    D001 the device lacks a figure, D002 an axis of more than one device has no link
constexpr failure validate(const machine& on, const mesh& m) {
  failure f = validate(on.device);
  for (int a = 0; a < m.rank && a < max_axes; ++a) {
    cost_detail::hop_list hops;
    cost_detail::add_hops(on, m, a, hops);
    for (const auto& h : hops)
      if (!(h.over.bandwidth > 0))
        f.record("D002", "device \"", on.device.name(), "\": axis \"", escaped(m.name(a)), "\" of ",
                 m.size(a),
                 " devices has no link; give the bandwidth that a device sends along it");
  }
  return f;
}

}  // namespace partita
