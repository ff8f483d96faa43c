/// Loops over slices of operands, and their iterations over located factors.
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

/// Runs the loop over a factor in `n` slices, or in the pieces of `halo` if it is possible.
/// `body(operands, types of the results, i)` runs iteration i, and `equal(r, made, first)` receives
/// results that are equal in all iterations.
template <class Body, class Equal>
std::vector<array> run_slices(const op_def& def, const factor_table& map, int row, int factor,
                              std::int64_t n, const halo_cut& halo,
                              const std::vector<array>& operands, const vec<tensor_type>& results,
                              span<const std::int64_t> attrs, const run_options& options,
                              const Body& body, const Equal& equal) {
  const auto& f = map.at(row, factor);
  vec<tensor_type> parts = results;
  std::vector<array> out;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const int dim = map.result_dim(f, static_cast<int>(r));
    if (dim != no_dim) parts[r].shape[dim] = halo.made > 0 ? halo.made : parts[r].shape[dim] / n;
    out.emplace_back(results[r]);
  }
  std::vector<std::vector<array>> made;  // by iteration
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<array> sliced = operands;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const int dim = map.operand_dim(f, static_cast<int>(k));
      if (dim == no_dim) continue;
      sliced[k] = halo.possible ? halo_piece(halo, static_cast<int>(k), i, operands)
                                : slice_of(operands[k], dim, n, i);
    }
    std::vector<array> pieces = body(sliced, parts, i);
    if (halo.made > 0)
      pieces[0] = kept_of(halo, pieces[0], i, results[0].shape[halo.result_dim] / n);
    if (f.again) made.push_back(pieces);
    for (std::size_t r = 0; r < results.size(); ++r) {
      const int dim = map.result_dim(f, static_cast<int>(r));
      if (dim != no_dim)
        put_slice(f.offset ? moved_by(pieces[r], parts[r].shape[dim] * i, options) : pieces[r], dim,
                  i, out[r]);
      else if (i == 0)
        out[r] = pieces[r];
      else if (!f.again && f.combine == combiner::stack)
        equal(r, pieces[r], out[r]);
      else if (!f.again)
        out[r] = combined(f.combine, out[r], pieces[r], options);
    }
  }
  if (f.carry != combiner::stack)
    add_carries(f, map.operand_dim(f, 0), n, operands[0], out[0], options);
  if (!f.again) return out;
  return run_again(def, map, row, factor, operands[0].shape(), made, results, attrs, options);
}

}  // namespace partita::run_detail
