/// Writes the functions that join and cut stacks of microbatches, as StableHLO.
#pragma once

#include <partita/mpmd/exported.hpp>
#include <partita/stablehlo/write_local.hpp>

namespace partita {

/// Writes the function that makes a stack of its slices: one argument for each of the first
/// dimension, one result.
constexpr text write_join(const mesh& m, const tensor_type& stack) {
  builder b;
  shape row = stack.shape, slice = {};
  row[0] = 1;
  for (int d = 1; d < row.rank; ++d) slice.push_back(row[d]);
  vec<value_id> rows;
  for (std::int64_t i = 0; i < stack.shape[0]; ++i)
    rows.push_back(ops::reshape(
        b, ops::parameter(b, concat("slice.", i).view(), {stack.element, slice}), row));
  b.p.outputs.push_back({ops::concatenate(b, {rows.data(), rows.size()}, 0), {}});
  device_program d = on_one_device(b.p);
  d.mesh = m;
  return write_stablehlo(d);
}

/// Writes the function that cuts a stack into its slices: one argument, one result for each of the
/// first dimension.
constexpr text write_cut(const mesh& m, const tensor_type& stack) {
  builder b;
  const value_id x = ops::parameter(b, "stack", stack);
  shape slice = {}, first = stack.shape, last = stack.shape;
  for (int d = 0; d < last.rank; ++d) first[d] = 0;
  for (int d = 1; d < last.rank; ++d) slice.push_back(last[d]);
  const auto rank = static_cast<std::size_t>(last.rank);
  for (std::int64_t i = 0; i < stack.shape[0]; ++i) {
    first[0] = i;
    last[0] = i + 1;
    const value_id row = ops::slice(b, x, {first.extents, rank}, {last.extents, rank});
    b.p.outputs.push_back({ops::reshape(b, row, slice), {}});
  }
  device_program d = on_one_device(b.p);
  d.mesh = m;
  return write_stablehlo(d);
}

}  // namespace partita
