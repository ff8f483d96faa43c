/// Parses device-local programs.
#pragma once

#include <partita/op/parse.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita {

inline constexpr const op_def* collective_registry[] = {
    &def<op::all_reduce>, &def<op::all_slice>, &def<op::all_gather>,  &def<op::reduce_scatter>,
    &def<op::all_to_all>, &def<op::permute>,   &def<op::shard_start>, &def<op::done>,
};

/// Parses a device-local program as printed by `print(program, &mesh)`, and stores the mesh of its
/// header in `m`. Declared result types of collectives are not checked; see `verify`.
///
/// Law       print(parse(print(p, &m), m), &m) = print(p, &m)
/// Errors    in program::error, as for source programs; M001 to M004 bad mesh
constexpr program parse(std::string_view in, mesh& m) {
  return op_detail::program_parser(in, collective_registry, &m).run();
}

}  // namespace partita
