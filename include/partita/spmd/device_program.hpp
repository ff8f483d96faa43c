/// Device-local programs.
#pragma once

#include <partita/ir/layout.hpp>
#include <partita/ir/print.hpp>
#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A program for one device of a mesh, the same for all, with its local argument and result types.
struct device_program {
  program local;
  partita::mesh mesh;  ///< with axes split as the program needs them
  /// Global. Where a dimension is padded the pieces together are larger: they start with the array.
  vec<tensor_type> input_types, output_types;
  vec<layout> inputs, outputs;  ///< how arguments and results lie on the mesh
};

/// A program on one device: a mesh without axes, on which nothing is sharded.
constexpr device_program on_one_device(const program& p) {
  device_program d;
  d.local = p;
  for (int i = 0; i < p.input_count(); ++i) d.input_types.push_back(p.input_type(i));
  for (int i = 0; i < p.output_count(); ++i) d.output_types.push_back(p.output_type(i));
  d.inputs.resize(p.inputs.size(), layout{});
  d.outputs.resize(p.outputs.size(), layout{});
  return d;
}

/// The device-local program as text, with its mesh.
constexpr text print(const device_program& d) { return print(d.local, &d.mesh); }

}  // namespace partita
