/// Programs for one device, as StableHLO text.
#pragma once

#include <partita/spmd/device_program.hpp>
#include <partita/stablehlo/write.hpp>
#include <partita/stablehlo/write_collectives.hpp>

namespace partita {

/// Reuse of the memory of an argument.
struct argument_donation {
  bool donated = false;  ///< true if its memory is free after the call
  int alias = -1;        ///< the result that reuses its memory, or -1
};

namespace stablehlo_detail {

/// Adds the layouts of shards, for read_local_stablehlo: `mhlo.frontend_attributes =
/// {partita.layout = "[{\22B\22}, {}]"}`. XLA preserves attributes that it does not know.
constexpr void add_layouts(port_texts& to, const vec<layout>& layouts,
                           const vec<tensor_type>& types, const mesh& m) {
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    text how, each = "partita.layout = ";
    print_layout(how, layouts[i], types[i].shape.rank, m);
    write_quoted(each, how.view(), false);
    append_attribute(to.frontend[i], each.view());
  }
}

}  // namespace stablehlo_detail

/// Writes the program that each device of the mesh runs, as a StableHLO module. It has one replica
/// per device, numbered as in the mesh, and collectives over groups of replicas. Arguments and
/// results are the blocks on a device, with their layouts as attributes and the attributes that
/// were read. Tags are omitted. `donations`: for each argument; if empty, the donations of the
/// module that was read.
///
/// Cost      linear in ops, and in devices for each list of axes that collectives use
/// Errors    W001 an op that cannot be written, W002 more than 2^20 devices
constexpr text write_stablehlo(const device_program& d,
                               const vec<argument_donation>& donations = {}) {
  text out, failed;
  if (d.local.error) return failed << "error: " << d.local.error.message << '\n';
  stablehlo_detail::module_writer m;
  m.mesh = &d.mesh;
  m.write_more = &stablehlo_detail::write_collective;
  const std::int64_t devices = d.mesh.devices();
  constexpr std::int64_t most = std::int64_t{1} << 20;
  if (devices > most)
    m.error.record("W002", "write: mesh ", d.mesh, " has ", devices, " devices; groups of at most ",
                   most, " can be written out");
  if (!m.error) {
    out << "module @partita attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = "
        << devices << " : i32} {\n";
    const program& p = d.local;
    interface_list ports = p.interface;
    if (!donations.empty()) {
      ports.inputs.resize(donations.size(), {});
      for (std::size_t i = 0; i < donations.size(); ++i) {
        ports.inputs[i].donated = donations[i].donated;
        ports.inputs[i].alias = donations[i].alias;
      }
    }
    stablehlo_detail::port_texts inputs(ports.inputs, d.inputs.size()),
        outputs(ports.outputs, d.outputs.size());
    stablehlo_detail::add_layouts(inputs, d.inputs, d.input_types, d.mesh);
    stablehlo_detail::add_layouts(outputs, d.outputs, d.output_types, d.mesh);
    stablehlo_detail::add_donations(inputs, ports, [&](int i, int k) {
      return k < p.output_count() && p.input_type(i) == p.output_type(k);
    });
    stablehlo_detail::write_main(m, out, p, inputs.finish(), outputs.finish());
    out << "}\n";
  }
  if (!m.error) return out;
  return failed << "error: " << m.error.message << '\n';
}

}  // namespace partita
