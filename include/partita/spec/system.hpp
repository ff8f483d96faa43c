/// Systems from text: a mesh, and what its devices are.
#pragma once

#include <partita/ir/mesh.hpp>
#include <partita/spec/lines.hpp>

namespace partita {

/// What a program is partitioned for. A figure that the text does not give is 0.
struct system_description {
  partita::mesh mesh;
  text device;           ///< its name
  double memory = 0;     ///< bytes of a device
  double flops = 0;      ///< FLOP/s of a device
  double bandwidth = 0;  ///< bytes per second from a device's memory
  struct link {
    double bandwidth = 0;  ///< bytes per second that a device sends along the axis
    double latency = 0;    ///< seconds
  };
  vec<link> links;  ///< by axis
  failure error;
};

/// A line for each thing, in any order; `#` and `//` begin comments:
///
/// ```
/// axis B 4               # name and size, most major first
/// axis M 2
/// devices 8              # as many as the axes make, for who likes to say it
/// device TPUv3
/// memory 16 GiB
/// flops 61.5 TFLOP/s
/// bandwidth 900 GB/s
/// link M 70 GB/s 1 us    # axis, bandwidth, latency
/// ```
///
/// Errors    X001 syntax, X002 an unknown unit, X003 an unknown word, X004 said twice, X005 a link
///           of no axis, X009 another number of devices than the axes make, M001 to M005 the mesh;
///           with line and column
constexpr system_description read_system(std::string_view in) {
  system_description s;
  spec_detail::lines l(in, "system");
  struct pending {
    std::size_t at;
    text axis;
    system_description::link value;
  };
  vec<pending> links;
  bool seen[5] = {};
  std::size_t asked_at = 0;
  std::int64_t asked = 0;
  const auto once = [&](int which, std::size_t at, std::string_view word) {
    if (seen[which]) l.fail(at, "X004", "\"", word, "\" is said twice");
    seen[which] = true;
  };
  while (!l.failed() && !l.at_end()) {
    const std::size_t at = l.position();
    const std::string_view word = l.word();
    if (word == "axis") {
      const text name = l.name();
      const std::int64_t size = l.number("a number of devices along the axis");
      if (!l.failed() && s.mesh.find(name) >= 0)
        l.fail(at, "X004", "axis \"", name, "\" is said twice");
      s.mesh.push_back({name, size});
    } else if (word == "devices") {
      once(4, at, word);
      asked_at = at;
      asked = l.number("a number of devices");
    } else if (word == "device") {
      once(0, at, word);
      s.device = l.name();
    } else if (word == "memory") {
      once(1, at, word);
      s.memory = l.quantity("a number of bytes, like 16 GiB,");
    } else if (word == "flops") {
      once(2, at, word);
      s.flops = l.quantity("a speed, like 61.5 TFLOP/s,");
    } else if (word == "bandwidth") {
      once(3, at, word);
      s.bandwidth = l.quantity("a speed, like 900 GB/s,");
    } else if (word == "link") {
      pending each{at, l.name(), {}};
      each.value.bandwidth = l.quantity("a speed, like 70 GB/s,");
      if (!l.at_line_end()) each.value.latency = l.quantity("a time, like 1 us,");
      links.push_back(each);
    } else {
      l.fail(at, "X003", "\"", word,
             "\" is unknown; axis, devices, device, memory, flops, bandwidth and link are known");
    }
    if (!l.failed() && !l.at_line_end()) l.expected("the end of the line");
  }
  s.links.assign(static_cast<std::size_t>(s.mesh.rank < max_axes ? s.mesh.rank : max_axes), {});
  for (const auto& each : links) {
    const int axis = s.mesh.find(each.axis);
    if (axis < 0 || axis >= max_axes)
      l.fail(each.at, "X005", "a link of \"", each.axis, "\", which is no axis");
    else
      s.links[axis] = each.value;
  }
  if (!l.failed() && seen[4] && s.mesh.devices() != asked)
    l.fail(asked_at, "X009", asked, " devices are asked for; the axes ", s.mesh, " are ",
           s.mesh.devices());
  s.error.record(l.error);
  if (!s.error) s.error.record(validate(s.mesh));
  return s;
}

/// Does a program that needs so many bytes on a device fit? A line, or nothing if the system does
/// not say how much memory a device has.
constexpr text print_memory(const system_description& s, std::int64_t peak_bytes) {
  text out;
  if (s.memory <= 0) return out;
  const double peak = static_cast<double>(peak_bytes);
  const auto bytes = static_cast<std::int64_t>(s.memory);
  out << "memory: " << peak_bytes << " of " << bytes << " bytes";
  if (!s.device.empty()) out << " of a " << s.device;
  if (peak <= s.memory) return out << ": it fits\n";
  return out << ": it does not fit, " << peak_bytes - bytes << " bytes are missing\n";
}

}  // namespace partita
