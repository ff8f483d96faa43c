/// One iteration of loops over located factors, run.
#pragma once

#include <span>
#include <vector>

#include <partita/core/located.hpp>
#include <partita/run/evaluate.hpp>

namespace partita::run_detail {

/// What an op does with pieces that start at `starts`, given for each of `pieces`.
///
/// Errors    those of the ops that its `locate` function appends
inline std::vector<array> run_iteration(const op_def& def, const factor_table& map, int row,
                                        const std::vector<array>& operands,
                                        std::span<const tensor_type> results,
                                        span<const std::int64_t> attrs,
                                        span<const located_piece> pieces,
                                        std::span<const std::int64_t> starts,
                                        const run_options& options) {
  vec<tensor_type> types;
  for (const array& each : operands) types.push_back(each.type());
  const located_work work =
      locate(def, map, row, types, {results.data(), results.size()}, attrs, pieces);
  work.p.error.raise();
  std::vector<array> inputs = operands;
  for (std::size_t i = 0; i < work.starts.size(); ++i) {
    array wide(tensor_type{dtype::i64, {}});
    *wide.mutable_data<std::int64_t>() = starts[static_cast<std::size_t>(work.starts[i].piece)];
    inputs.push_back(
        as_type(wide, work.p.input_type(static_cast<int>(operands.size() + i)).element));
  }
  std::vector<array> found;
  for (const array& each : evaluate(work.p, options, std::span<const array>(inputs)))
    found.push_back(each);
  return found;
}

}  // namespace partita::run_detail
