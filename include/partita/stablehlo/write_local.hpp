/// Programs for one device as StableHLO text.
#pragma once

#include <partita/spmd/device_program.hpp>
#include <partita/stablehlo/write.hpp>
#include <partita/stablehlo/write_collectives.hpp>

namespace partita {

/// What becomes of the memory of an argument.
struct argument_donation {
  bool donated = false;  ///< its bytes are free when the function has run
  int alias = -1;        ///< the result that lies where it did, or -1: none
};

namespace stablehlo_detail {

/// How pieces lie on the mesh, for read_local_stablehlo; XLA keeps what it does not know:
/// `mhlo.frontend_attributes = {partita.layout = "[{\22B\22}, {}]"}`.
constexpr vec<text> written_layouts(const vec<layout>& layouts, const vec<tensor_type>& types,
                                    const mesh& m) {
  vec<text> list;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    text how, each = "mhlo.frontend_attributes = {partita.layout = ";
    print_layout(how, layouts[i], types[i].shape.rank, m);
    write_quoted(each, how.view(), false);
    each << '}';
    list.push_back(each);
  }
  return list;
}
/// Source    JAX: `jax.buffer_donor`, and `tf.aliasing_output` for a result that is known
constexpr void write_donations(vec<text>& list, const vec<argument_donation>& donations) {
  for (std::size_t i = 0; i < donations.size(); ++i) {
    if (!donations[i].donated) continue;
    if (donations[i].alias >= 0)
      list[i] << ", tf.aliasing_output = " << donations[i].alias << " : i32";
    else
      list[i] << ", jax.buffer_donor = true";
  }
}

}  // namespace stablehlo_detail

/// The program that each device of the mesh runs as a StableHLO module: as many replicas as there
/// are devices, numbered as the mesh numbers them, and collectives over groups of replicas.
/// Arguments and results are the pieces that a device holds, with their layouts as attributes. Tags
/// are left out. `donations`: of each argument, or none.
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
    vec<text> arguments = stablehlo_detail::written_layouts(d.inputs, d.input_types, d.mesh);
    stablehlo_detail::write_donations(arguments, donations);
    stablehlo_detail::write_main(
        m, out, d.local, arguments,
        stablehlo_detail::written_layouts(d.outputs, d.output_types, d.mesh));
    out << "}\n";
  }
  if (!m.error) return out;
  return failed << "error: " << m.error.message << '\n';
}

}  // namespace partita
