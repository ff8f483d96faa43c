/// Device-local programs.
#pragma once

#include <partita/ir/layout.hpp>
#include <partita/ir/print.hpp>
#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A program for one device of a mesh, identical for all devices, with its local argument and
/// result types.
struct device_program {
  program local;
  partita::mesh mesh;  ///< with axes split as the program needs them
  /// Global types, without padding: the shards of a padded dimension together exceed them, and
  /// begin with the array.
  vec<tensor_type> input_types, output_types;
  vec<layout> inputs, outputs;  ///< the layouts of arguments and results on the mesh
};

/// Returns a program on one device: a mesh without axes, on which nothing is sharded.
constexpr device_program on_one_device(const program& p) {
  device_program d;
  d.local = p;
  for (int i = 0; i < p.input_count(); ++i) d.input_types.push_back(p.input_type(i));
  for (int i = 0; i < p.output_count(); ++i) d.output_types.push_back(p.output_type(i));
  d.inputs.resize(p.inputs.size(), layout{});
  d.outputs.resize(p.outputs.size(), layout{});
  return d;
}

/// Returns the device-local program as text, with its mesh.
constexpr text print(const device_program& d) { return print(d.local, &d.mesh); }

}  // namespace partita
