/// Runs one iteration of loops over located factors.
#pragma once

#include <span>
#include <vector>

#include <partita/core/located.hpp>
#include <partita/run/evaluate.hpp>
#include <partita/run/slices.hpp>

namespace partita::run_detail {

/// Returns the results of an op on shards that start at `starts`, one for each of `pieces`.
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
    *wide.mutable_data<std::int64_t>() = starts[at(work.starts[i].piece)];
    inputs.push_back(
        as_type(wide, work.p.input_type(static_cast<int>(operands.size() + i)).element));
  }
  std::vector<array> found;
  for (const array& each : evaluate(work.p, options, std::span<const array>(inputs)))
    found.push_back(each);
  return found;
}

/// Applies an op again to its results on shards along a factor. `whole` is the shape of its
/// operands before they were cut.
inline std::vector<array> run_again(const op_def& def, const factor_table& map, int row, int factor,
                                    const shape& whole, const std::vector<std::vector<array>>& made,
                                    const vec<tensor_type>& results, span<const std::int64_t> attrs,
                                    const run_options& options) {
  const int dim = map.operand_dim(map.at(row, factor), 0);
  const shape one = map.again_shape(row, whole, results[0].shape);
  shape all = one;
  all[dim] *= static_cast<std::int64_t>(made.size());
  std::vector<array> operands;
  for (std::size_t r = 0; r < results.size(); ++r) {
    operands.emplace_back(tensor_type{results[r].element, all});
    for (std::size_t i = 0; i < made.size(); ++i)
      put_slice(made[i][r].reshaped(one), dim, static_cast<std::int64_t>(i), operands[r]);
  }
  return run_op(def, operands, std::span<const std::int64_t>(attrs.data(), attrs.size()),
                std::span<const tensor_type>(results.data(), results.size()), options);
}

}  // namespace partita::run_detail
