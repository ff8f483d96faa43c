/// `--xla PLUGIN`: XLA runs the program, and reports the memory and the flops of what it compiled.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/support/number_text.hpp>
#if defined(PARTITA_WITH_XLA)
#include <partita/xla.hpp>
#endif

namespace engine {

#if defined(PARTITA_WITH_XLA)
/// A client with as many devices as the program needs.
template <class Partitioned>
partita::xla::client client_for(const Partitioned& p, const std::string& plugin) {
  std::int64_t devices = 0;
  if constexpr (requires { p.device; }) {
    devices = p.device.mesh.devices();
  } else {
    for (int m = 0; m < p.topology.count(); ++m) devices += p.topology.mesh_of(m).devices();
  }
  return partita::xla::client(plugin, {.devices = static_cast<int>(devices)});
}

/// Runs the program on XLA.
template <class Partitioned>
partita::results run(const Partitioned& p, const std::vector<partita::array>& inputs,
                     const std::string& plugin) {
  const partita::xla::executable run(p, client_for(p, plugin), {.donate = false});
  const partita::xla::sharded_state made = run(inputs);
  std::vector<partita::array> arrays;
  auto names = std::make_shared<std::vector<std::string>>();
  for (const auto& each : made.values()) {
    arrays.push_back(run.whole(each));
    names->push_back(each.name);
  }
  return {std::move(arrays), std::move(names)};
}

/// Returns a line for each compiled program: memory and flops on each device.
template <class Partitioned>
std::string report(const Partitioned& p, const std::string& plugin) {
  const partita::xla::client c = client_for(p, plugin);
  const partita::xla::executable run(p, c);
  partita::text t;
  t << "XLA (" << std::string_view(c.platform()) << ", PJRT " << std::string_view(c.api_version())
    << "), per device:\n";
  for (const auto& each : run.compiled()) {
    const auto& m = each.memory;
    t << "  " << std::string_view(each.name) << ": arguments " << m.arguments << " bytes, results "
      << m.results << ", of these in the memory of arguments " << m.aliased << ", temporary "
      << m.temporary;
    if (m.peak > 0) t << ", peak " << m.peak;
    for (const std::string_view name : {"flops", "bytes accessed"})
      for (const auto& figure : each.costs) {
        if (figure.name != name) continue;
        t << ", " << name << ' ';
        partita::print_number(t, figure.value);
      }
    t << '\n';
  }
  return std::string(t.view());
}
#else
[[noreturn]] inline void not_there() {
  throw partita::error(
      "--xla: this program was built without XLA; build it where CMake finds pjrt_c_api.h "
      "(PARTITA_PJRT_INCLUDE, or the wheel xla-cpu-pjrt)");
}
template <class Partitioned>
partita::results run(const Partitioned&, const std::vector<partita::array>&, const std::string&) {
  not_there();
}
template <class Partitioned>
std::string report(const Partitioned&, const std::string&) {
  not_there();
}
#endif

}  // namespace engine
