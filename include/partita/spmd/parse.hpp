/// Device-local programs from text.
#pragma once

#include <partita/op/parse.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita {

inline constexpr const op_def* collective_registry[] = {
    &def<op::all_reduce>, &def<op::all_slice>, &def<op::all_gather>,  &def<op::reduce_scatter>,
    &def<op::all_to_all>, &def<op::permute>,   &def<op::shard_start>, &def<op::done>,
};

/// The program for one device that `print(program, &mesh)` shows as this text, and the mesh of its
/// header. The types of collectives are taken as the text gives them.
///
/// Law       print(parse(print(p, &m), m), &m) = print(p, &m)
/// Errors    in program::error, as for source programs; M001 to M004 bad mesh
constexpr program parse(std::string_view in, mesh& m) {
  return op_detail::program_parser(in, collective_registry, &m).run();
}

}  // namespace partita
