/// Writes the functions of a pipeline as StableHLO, one module for each.
#pragma once

#include <partita/mpmd/exported_names.hpp>
#include <partita/stablehlo/write_local.hpp>

namespace partita {

/// Writes the function with this number, for the devices of its mesh. Donated arguments have
/// `jax.buffer_donor`, or `tf.aliasing_output` if a result reuses their memory. See
/// write_stablehlo(device_program).
///
/// Errors    those of write_stablehlo, and that of the pipeline, as text that starts with "error: "
constexpr text write_stablehlo(const pipelined& p, const exported_pipeline& e, int function,
                               bool place_ops = true) {
  if (e.error) return concat("error: ", e.error.message, '\n');
  const pipeline_function& f = e.functions[function];
  const pipeline_unit& u = p.function(f.units[0]);
  vec<argument_donation> donations;
  for (std::size_t k = 0; k < f.donated.size(); ++k)
    donations.push_back({f.donated[k] != 0, f.alias[k]});
  // Buffers between the functions of a pipeline are in device memory.
  const memory_annotations memories{.ports = false, .ops = place_ops};
  if (u.device.mesh.rank > 0) return write_stablehlo(u.device, donations, memories);
  device_program whole = u.device;  // each device of the mesh runs all of it
  whole.mesh = p.topology.mesh_of(u.piece.mesh);
  return write_stablehlo(whole, donations, memories);
}

/// Writes all functions as one module, which contains a module for each by its name (see
/// print_calls).
///
/// Errors    as above
constexpr text write_stablehlo(const pipelined& p, const exported_pipeline& e) {
  const mpmd_detail::exported_names names(p, e);
  text out = "module @partita {\n";
  for (int f = 0; f < static_cast<int>(e.functions.size()); ++f) {
    const text one = write_stablehlo(p, e, f);
    constexpr std::string_view head = "module @partita";
    if (one.view().substr(0, head.size()) != head) return one;
    std::string_view rest = one.view().substr(head.size());
    out << "  module @\"" << names.function(f) << '"';
    for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      out << rest.substr(0, end + 1);
      rest.remove_prefix(end + 1);
      if (!rest.empty()) out << "  ";
    }
  }
  return e.error ? concat("error: ", e.error.message, '\n') : out << "}\n";
}

}  // namespace partita
