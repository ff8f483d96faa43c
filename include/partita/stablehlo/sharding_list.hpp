/// The shardings of a module: parts of axes for each dimension of a value.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/mesh.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A part of a mesh axis, by name. If a sharding names no axes, a digit of the device numbers
/// instead: `size` values with a distance of `stride`.
struct sharding_part {
  text axis;
  std::int64_t pre = 1;
  std::int64_t size = 0;    ///< of an axis; 0: the full axis
  std::int64_t stride = 0;  ///< of a digit; 0 for an axis
};

/// The requested layout of a value.
struct value_sharding {
  enum kind_type : std::uint8_t { input, output, tag };
  struct dimension {
    vec<sharding_part> parts;  ///< major to minor
    bool open = false;         ///< true if propagation may shard it further
    std::int64_t priority = 0;
  };
  kind_type kind = input;
  int number = -1;  ///< of an input or output
  text name;        ///< of a tag; also used for its copies, which have the suffix `.again`
  text written;     ///< the text in the module
  vec<dimension> dims;
  vec<sharding_part> replicated;
};

/// All shardings of a module, and the meshes that it names.
struct sharding_list {
  struct named_mesh {
    text name;
    partita::mesh mesh;
  };
  vec<named_mesh> meshes;
  vec<value_sharding> values;
  text mesh_used;            ///< the first mesh that a sharding names
  std::int64_t devices = 0;  ///< the number of devices of shardings without a mesh
};

}  // namespace partita
