/// Slices of sharded values: the elements of few shards are sent by their owners.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/core/core_program.hpp>
#include <partita/ir/copy.hpp>
#include <partita/op/concatenate.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/local_index.hpp>
#include <partita/op/select.hpp>
#include <partita/op/slice.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/support/checked.hpp>

namespace partita::spmd_detail {

/// Elements start, start + stride, ... of a dimension, `count` in total.
struct slice_run {
  std::int64_t start = 0, stride = 1, count = 0;

  constexpr slice_run(const program& p, op_id o, int dim) {
    const auto attrs = p.attrs(o);
    const op::slice::bounds at(attrs.data(), attrs.size(), p.type(p.operand(o, 0)).shape.rank, dim);
    start = at.start;
    stride = at.stride;
    count = p.type(p.op(o).result).shape[dim];
  }
  constexpr slice_run(std::int64_t first, std::int64_t step, std::int64_t n)
      : start(first), stride(step), count(n) {}

  /// The blocks that contain the first and the last element, for blocks of size `block`.
  constexpr std::int64_t first_block(std::int64_t block) const { return start / block; }
  constexpr std::int64_t last_block(std::int64_t block) const {
    return (start + (count - 1) * stride) / block;
  }
  /// The elements in block number `i`, relative to the block's start.
  constexpr slice_run in_block(std::int64_t i, std::int64_t block) const {
    const std::int64_t begin = i * block, skipped = begin > start ? steps(begin - start) : 0;
    const std::int64_t first = start + skipped * stride, left = steps(begin + block - first);
    const std::int64_t n = left < count - skipped ? left : count - skipped;
    return {first - begin, n == 1 ? 1 : stride, n};
  }

 private:
  /// The minimum number of steps that cover a distance.
  constexpr std::int64_t steps(std::int64_t distance) const {
    return (distance + stride - 1) / stride;
  }
};

/// The maximum number of shards in which the elements of a slice are looked for.
inline constexpr std::int64_t most_owners = 8;

/// For a slice without loops over some axes that shard its operand, returns those axes, with their
/// dimensions, along which it reads elements of few shards. These elements are summed over the
/// devices, where only the owner of an element contributes it, if that sends less than a gather of
/// all shards. Otherwise returns an empty layout.
///
/// all_gather(x)[a:b] => all_reduce(x[a:b] on the owners, zeros elsewhere)
constexpr layout owner_slice_axes(const core_program& c, op_id o, const layout& have,
                                  const layout& want) {
  layout along, rest;
  if (c.p.ops[o].def->id != def<op::slice>.id || have.count <= want.count || c.has_halo(o) ||
      c.p.type(c.p.op(o).result).shape.has_no_elements())
    return {};
  for (const auto& e : have) (want.dim_of(e.axis) == e.dim ? rest : along).push_back(e.axis, e.dim);
  if (!(rest == want)) return {};
  const shape from = have.local(c.p.type(c.p.operand(o, 0)).shape, c.mesh);
  std::int64_t taken = 2, all = 1;
  for (int d = 0; d < from.rank; ++d) {
    const std::int64_t pieces = along.pieces(c.mesh, d);
    if (pieces == 1) continue;
    const slice_run run(c.p, o, d);
    if (want.pieces(c.mesh, d) > 1 || run.count == 0 || run.count == from[d] * pieces ||
        run.last_block(from[d]) - run.first_block(from[d]) >= most_owners)
      return {};
    taken = saturating_multiply(taken, run.count);
    all = saturating_multiply(all, from[d] * pieces);
  }
  return taken < all ? along : layout{};
}

/// The collective that finishes such a sum.
constexpr collective owner_slice_sum(const core_program& c, op_id o, const layout& along) {
  collective what;
  what.kind = collective::all_reduce;
  what.combine = op::shard_combiner(c.p.type(c.p.op(o).result).element);
  for (const auto& e : along) what.axes.push_back(e.axis, no_dim);
  return what;
}

/// Appends to a device-local program the elements of a slice that this device owns, and zeros for
/// the others.
class owner_slice {
 public:
  constexpr owner_slice(program& out, const core_program& c, op_id o, const layout& along)
      : out_(out), c_(c), o_(o), along_(along) {}

  /// Slices one dimension at a time; unsharded dimensions are sliced as usual.
  constexpr value_id operator()(value_id x) {
    for (int d = 0; d < out_.type(x).shape.rank; ++d) {
      const slice_run run(c_.p, o_, d);
      axis_list axes;
      for (const auto& e : along_)
        if (e.dim == d) axes.push_back(e.axis);
      const bool whole = run.count == c_.p.type(c_.p.operand(o_, 0)).shape[d];
      if (!whole) x = axes.count > 0 ? own(x, d, run, axes) : part(x, d, run);
    }
    return x;
  }

 private:
  program& out_;
  const core_program& c_;
  op_id o_;
  const layout& along_;

  constexpr value_id append(const op_def& def, span<const value_id> operands,
                            span<const std::int64_t> attrs, const tensor_type& type) {
    return append_for(out_, c_.p.op(o_).marks, def, operands, attrs, type);
  }
  constexpr value_id own(value_id x, int dim, const slice_run& run, const axis_list& axes) {
    const std::int64_t block = out_.type(x).shape[dim];
    vec<value_id> parts;
    for (std::int64_t i = run.first_block(block); i <= run.last_block(block); ++i)
      if (const slice_run here = run.in_block(i, block); here.count > 0)
        parts.push_back(only_on(i, axes, part(x, dim, here)));
    if (parts.size() == 1) return parts[0];
    tensor_type joined = out_.type(parts[0]);
    joined.shape[dim] = run.count;
    const std::int64_t attrs[] = {dim};
    return append(def<op::concatenate>, {parts.data(), parts.size()}, attrs, joined);
  }
  constexpr value_id part(value_id x, int dim, const slice_run& run) {
    tensor_type t = out_.type(x);
    if (run.count == t.shape[dim]) return x;
    const auto rank = static_cast<std::size_t>(t.shape.rank);
    std::int64_t attrs[3 * max_rank] = {};
    for (std::size_t d = 0; d < rank; ++d) {
      const bool mine = static_cast<int>(d) == dim;
      attrs[d] = mine ? run.start : 0;
      attrs[rank + d] = mine ? run.start + (run.count - 1) * run.stride + 1 : ops::whole;
      attrs[2 * rank + d] = mine ? run.stride : 1;
    }
    t.shape[dim] = run.count;
    const value_id operands[] = {x};
    return append(def<op::slice>, operands, {attrs, (run.stride == 1 ? 2 : 3) * rank}, t);
  }
  /// x on device number `i` along the axes, zeros on the others.
  constexpr value_id only_on(std::int64_t i, const axis_list& axes, value_id x) {
    const tensor_type t = out_.type(x);
    const std::int64_t number[] = {i}, eq[] = {static_cast<std::int64_t>(ops::direction::eq)},
                       none[] = {is_floating(t.element) ? negative_zero : 0};
    const value_id mine = append_shard_start(out_, 1, axes, dtype::i64);
    out_.ops.back().marks = c_.p.op(o_).marks;
    const value_id both[] = {mine, append(def<op::constant>, {}, number, {dtype::i64, {}})};
    const value_id chosen[] = {append(def<op::compare>, both, eq, {dtype::boolean, {}}), x,
                               append(def<op::constant>, {}, none, {t.element, {}})};
    return append(def<op::select>, chosen, {}, t);
  }
  static constexpr std::int64_t negative_zero = std::bit_cast<std::int64_t>(-0.0);
};

}  // namespace partita::spmd_detail
