/// Gathers of rows, and scatters into rows, whose rows and batch are sharded along the same axes:
/// the indices are sent and the table stays in place.
#pragma once

#include <cstdint>

#include <partita/op/gather.hpp>
#include <partita/op/scatter.hpp>
#include <partita/spmd/local_layouts.hpp>
#include <partita/support/checked.hpp>

namespace partita::spmd_detail {

/// The plan for a gather whose table rows are sharded along the same axes as its indices and its
/// result, so that no loop of the op is over the rows.
///
/// gather(all_gather(t), i) => reduce_scatter(gather of own rows(t, all_gather(i)))
///
/// Each of n devices sends (n - 1) times its shards of i and of the result instead of (n - 1) times
/// its shard of t. Used if that is less.
struct row_lookup {
  int factor = -1;        ///< over the rows; -1: not applicable
  collective indices;     ///< gathers the indices
  collective result;      ///< reduce-scatters the gathered rows
  layout indices_layout;  ///< layout of the indices before
  layout op_layout;       ///< layout of the gathered rows before the sum
  std::int64_t rows = 0;  ///< of the table

  constexpr explicit operator bool() const { return factor >= 0; }
};

/// The dimension of `l` that all axes of `along` slice, after those of `rest`, or no_dim.
constexpr int dim_of_innermost(const layout& l, const layout& along, layout& rest) {
  const int d = l.dim_of(along[0].axis);
  layout all;
  for (const auto& e : l)
    if (along.dim_of(e.axis) < 0) rest.push_back(e.axis, e.dim);
  all = rest;
  for (const auto& e : along) all.push_back(e.axis, d);
  return d >= 0 && all == l ? d : int{no_dim};
}

/// Plans a gather with a stationary table. `have(v)` returns the layout of an operand.
template <class Have>
constexpr row_lookup find_row_lookup(const core_program& c, op_id o, const local_layouts& layouts,
                                     const Have& have) {
  const op_node& n = c.p.ops[o];
  if (n.def->id != def<op::gather>.id || !layouts.keeps_rows()) return {};
  const layout want = layouts.sums.required_layout({o, 0}), table = have(c.p.operand(o, 0)),
               made = layouts.sums.produced_layout(n.result);
  if (table.count <= want.count || !layouts.finished(n.result) || !c.located_of(o).empty())
    return {};
  row_lookup found;
  layout along, kept;
  for (const auto& e : table)
    (want.dim_of(e.axis) == e.dim ? kept : along).push_back(e.axis, e.dim);
  layout rest;
  const int d = dim_of_innermost(table, along, rest);
  if (!(kept == want) || d == no_dim || want.pieces(c.mesh, d) > 1 ||
      c.true_shape(c.p.operand(o, 0))[d] != c.p.type(c.p.operand(o, 0)).shape[d])
    return {};
  found.indices_layout = layouts.sums.required_layout({o, 1});
  layout gathered;
  const int i = dim_of_innermost(found.indices_layout, along, gathered),
            r = dim_of_innermost(made, along, found.op_layout);
  if (i == no_dim || r == no_dim || !(have(c.p.operand(o, 1)) == found.indices_layout)) return {};
  const factor* const factors = c.map.factors_of(o);
  bool batch = false;
  for (int f = 0; f < c.map.ops[o].count; ++f) {
    if (factors[f].located && c.map.operand_dim(factors[f], 0) == d) found.factor = f;
    batch = batch || (c.map.operand_dim(factors[f], 1) == i && factors[f].result_dim == r &&
                      c.map.operand_dim(factors[f], 0) == no_dim);
  }
  const auto bytes = [&](value_id v, const layout& l) {
    return tensor_type{c.p.type(v).element, l.local(c.p.type(v).shape, c.mesh)}.bytes();
  };
  if (!batch || found.factor < 0 ||
      saturating_add(bytes(c.p.operand(o, 1), found.indices_layout), bytes(n.result, made)) >=
          bytes(c.p.operand(o, 0), table))
    return {};
  found.rows = factors[found.factor].size;
  found.indices.kind = collective::all_gather;
  found.result.kind = collective::reduce_scatter;
  found.result.combine = factors[found.factor].combine;
  for (const auto& e : along) {
    found.indices.axes.push_back(e.axis, i);
    found.result.axes.push_back(e.axis, r);
  }
  return found;
}

/// The plan for a scatter into rows whose sum would be scattered over the rows along the axes that
/// shard the updates.
///
/// reduce_scatter(scatter(i, u)) => scatter to own rows(all_gather(i), all_gather(u))
///
/// Each of n devices sends (n - 1) times its shards of i and u instead of (n - 1) times its shard
/// of the rows. Used if that is less.
struct row_update {
  int factor = -1;            ///< over the rows; -1: not applicable
  collective operands[2];     ///< gather indices and updates
  layout operand_layouts[2];  ///< their layouts after the gathers
  layout op_layout;           ///< layout of the result
  std::int64_t rows = 0;      ///< of the result

  constexpr explicit operator bool() const { return factor >= 0; }
};

/// Plans a scatter with stationary rows.
constexpr row_update find_row_update(const core_program& c, op_id o, const local_layouts& layouts) {
  const op_node& n = c.p.ops[o];
  if (n.def->id != def<op::scatter>.id || n.operand_count != 2 || !layouts.keeps_rows() ||
      c.p.operand(o, 0) == c.p.operand(o, 1) || layouts.finished(n.result) ||
      !c.located_of(o).empty())
    return {};
  row_update found;
  collective sum;
  int steps = 0;
  found.op_layout = layouts.finish(n.result, layouts.sums.produced_layout(n.result),
                                   [&](const collective& what, const layout&) {
                                     sum = what;
                                     ++steps;
                                   });
  if (steps != 1 || sum.kind != collective::reduce_scatter) return {};
  const layout& along = sum.axes;
  const int d = along[0].dim;
  layout rest;
  if (dim_of_innermost(found.op_layout, along, rest) != d || rest.pieces(c.mesh, d) > 1 ||
      c.true_shape(n.result)[d] != c.p.type(n.result).shape[d])
    return {};
  const factor* const factors = c.map.factors_of(o);
  int dims[2] = {};
  for (int k = 0; k < 2; ++k) {
    dims[k] =
        dim_of_innermost(layouts.sums.required_layout({o, k}), along, found.operand_layouts[k]);
    if (dims[k] == no_dim) return {};
    found.operands[k].kind = collective::all_gather;
    for (const auto& e : along) found.operands[k].axes.push_back(e.axis, dims[k]);
  }
  bool batch = false;
  for (int f = 0; f < c.map.ops[o].count; ++f) {
    if (factors[f].located && factors[f].result_dim == d) found.factor = f;
    batch = batch || (factors[f].result_dim == no_dim && factors[f].combine == sum.combine &&
                      c.map.operand_dim(factors[f], 0) == dims[0] &&
                      c.map.operand_dim(factors[f], 1) == dims[1]);
  }
  const auto bytes = [&](value_id v, const layout& l) {
    return tensor_type{c.p.type(v).element, l.local(c.p.type(v).shape, c.mesh)}.bytes();
  };
  if (!batch || found.factor < 0 ||
      saturating_add(bytes(c.p.operand(o, 0), layouts.sums.required_layout({o, 0})),
                     bytes(c.p.operand(o, 1), layouts.sums.required_layout({o, 1}))) >=
          bytes(n.result, found.op_layout))
    return {};
  found.rows = factors[found.factor].size;
  return found;
}

}  // namespace partita::spmd_detail
