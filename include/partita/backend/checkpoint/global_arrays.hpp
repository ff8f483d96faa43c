/// Checkpoints of partitioned programs that run on the emulator, where arrays are global.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <partita/backend/checkpoint/reader.hpp>
#include <partita/backend/checkpoint/save.hpp>
#include <partita/run/file/load.hpp>
#include <partita/run/results.hpp>
#include <partita/schedule/reshard_plan.hpp>

namespace partita {

/// Writes results as the shards of the mesh: all of them, or those in `names`, each of which
/// is a result or a prefix of its path. A result has the layout of the output of its name, or else
/// of the input.
///
/// Errors    those of the overload for shards; N010 no result has this name, P007 neither an output
///           nor an input has it
template <std::convertible_to<std::string_view>... Names>
saving save_checkpoint(const std::string& path, const partitioned& p, const results& r,
                       const checkpoint_options& options = {}, const Names&... names) {
  p.error.raise();
  std::vector<checkpoint_array> arrays;
  for (const auto& [name, value] : run_detail::selected(r, {names...})) {
    schedule_detail::value_layout v;
    if (!schedule_detail::find_value(p, name, v)) p.output(name);  // throws
    const text kept(std::string_view{name});
    checkpoint_array made{{kept, v.type.element, v.type.shape, v.local_shape, v.sharding}, {}};
    for (std::int64_t device = 0; device < p.mesh().devices(); ++device)
      made.shards.push_back({device, value});
    arrays.push_back(std::move(made));
  }
  return save_checkpoint(path, p.mesh(), std::move(arrays), options);
}
template <std::convertible_to<std::string_view> Name,
          std::convertible_to<std::string_view>... Names>
saving save_checkpoint(const std::string& path, const partitioned& p, const results& r,
                       const Name& name, const Names&... names) {
  return save_checkpoint(path, p, r, checkpoint_options{}, name, names...);
}

/// Loads global arrays for the inputs in `names`; each name is an input or a prefix of
/// its path: `load_checkpoint("step_100", step(), "params", "opt")`. `p` is a program or the result
/// of partitioning one. The checkpoint may have other arrays. All types are checked before any
/// array is read.
///
/// Errors    those of checkpoint_reader; K006, K007, N010 no input has this name
template <class P, std::convertible_to<std::string_view>... Names>
requires((run_detail::SourceProgram<P> || run_detail::HoldsSource<P>)&&sizeof...(Names) > 0) results
    load_checkpoint(const std::string& path, const P& p, const Names&... names) {
  const checkpoint_reader in(path);
  const auto wanted = run_detail::inputs_of(run_detail::source_of(p), {names...});
  std::vector<named_array> arrays;
  for (const auto& [name, type] : wanted) in.need(name, type);
  for (const auto& [name, type] : wanted)
    arrays.push_back({name, in.read(name, {}, in.need(name, type).type.shape)});
  return run_detail::as_results(std::move(arrays));
}

}  // namespace partita
