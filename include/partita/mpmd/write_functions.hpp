/// Functions of a pipeline as StableHLO, a module for each.
#pragma once

#include <partita/mpmd/exported.hpp>
#include <partita/stablehlo/write_local.hpp>

namespace partita {

/// The function that all calls of this number call, for the devices of its mesh: arguments that it
/// is given for good have `jax.buffer_donor`, or `tf.aliasing_output` where a result takes their
/// place. See write_stablehlo(device_program).
///
/// Errors    those of write_stablehlo, and that of the pipeline: behind "error: "
constexpr text write_stablehlo(const pipelined& p, const exported_pipeline& e, int function) {
  if (e.error) return concat("error: ", e.error.message, '\n');
  const pipeline_function& f = e.functions[function];
  const pipeline_unit& u = p.function(f.units[0]);
  vec<argument_donation> donations;
  for (std::size_t k = 0; k < f.donated.size(); ++k)
    donations.push_back({f.donated[k] != 0, f.alias[k]});
  if (u.device.mesh.rank > 0) return write_stablehlo(u.device, donations);
  device_program whole = u.device;  // each device of the mesh runs all of it
  whole.mesh = p.topology.mesh_of(u.piece.mesh);
  return write_stablehlo(whole, donations);
}

}  // namespace partita
