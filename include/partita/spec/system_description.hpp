/// A system that was read: its meshes and devices, and texts about what it lacks.
#pragma once

#include <partita/cost/device.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/mpmd/topology.hpp>

namespace partita {

/// A system: one mesh, or several named meshes, with their devices. A figure that neither the text
/// nor the table of devices contains is 0.
struct system_description {
  partita::mesh mesh;
  machine on;                  ///< for several meshes: the machine above the first one
  vec<named_mesh> several;     ///< used instead of `mesh`, which then has no axes
  bool tells_devices = false;  ///< the text has the name, figures or links of a device
  failure error;

  constexpr bool has_several() const { return !several.empty(); }
  constexpr partita::topology topology() const {
    partita::topology t;
    for (const named_mesh& m : several) t.push_back(m);
    return t;
  }
  /// True if the text has all figures that the simulation of a run needs.
  constexpr bool can_simulate() const { return !error && !missing(); }
  /// Reports the first figure that a simulation needs and the text lacks.
  ///
  /// Errors    D001, D002
  constexpr failure missing() const {
    if (!has_several()) return validate(on, mesh);
    for (const named_mesh& m : several)
      if (failure f = validate(machine(m.has_device ? m.device : on.device), m.mesh)) return f;
    return {};
  }
};

/// Explains why a report has no times although the system describes devices; empty if it has times.
constexpr text print_missing(const system_description& s) {
  if (!s.tells_devices) return {};
  const failure f = s.missing();
  return f ? concat("time: not simulated; ", f.message, '\n') : text();
}

/// Returns a line that states whether a program with this peak fits on a device, in bytes; empty if
/// the memory of a device is unknown.
constexpr text print_memory(const system_description& s, std::int64_t peak_bytes) {
  text out;
  const device& d = s.on.device;
  if (d.memory <= 0) return out;
  const auto bytes = static_cast<std::int64_t>(d.memory);
  out << "memory: " << peak_bytes << " of " << bytes << " bytes";
  if (!d.name().empty()) out << " of a " << d.name();
  if (static_cast<double>(peak_bytes) <= d.memory) return out << ": it fits\n";
  return out << ": it does not fit, " << peak_bytes - bytes << " more bytes are needed\n";
}

}  // namespace partita
