/// The contribution of preceding shards to an op that accumulates along a sharded dimension.
#pragma once

#include <cstdint>

#include <partita/ir/copy.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/cumsum.hpp>
#include <partita/op/reshape.hpp>
#include <partita/op/slice.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::spmd_detail {

/// Appends to a device-local program the ops that complete `y`, which op `like` computes from its
/// shard `x`, and returns the result. `what` gathers along the result dimension of factor `f`;
/// `note(bytes)` receives the operand size of the gather.
///
/// totals = all_gather(last position of the running combination)
/// y => y (combined with) all_slice(exclusive running combination of totals)
template <class Note>
constexpr value_id append_shard_prefix(program& out, const op_node& like, const factor& f,
                                       const collective& what, const mesh& m, value_id x,
                                       value_id y, const Note& note) {
  const int dim = f.result_dim;
  const tensor_type piece = out.type(y);
  const auto rank = static_cast<std::size_t>(piece.shape.rank);
  const auto append_op = [&](const op_def& d, span<const value_id> operands,
                             span<const std::int64_t> attrs, const tensor_type& t) {
    return append_for(out, like.marks, d, operands, attrs, t);
  };
  const auto running = [&](value_id of, bool exclusive) {
    const std::int64_t attrs[] = {dim, f.backwards, exclusive, static_cast<int>(f.carry)};
    const value_id operands[] = {of};
    return append_op(def<op::cumsum>, operands, {attrs, f.carry == combiner::add ? 3u : 4u},
                     out.type(of));
  };
  const auto collect = [&](collective::kind_type kind, value_id of, const tensor_type& t) {
    collective each = what;
    each.kind = kind;
    const value_id made = append(out, each, of, t);
    out.ops.back().marks = like.marks;
    return made;
  };
  const op_node& maker = out.op(out.producer(y));
  const bool inclusive = maker.def->id == def<op::cumsum>.id && out.attrs(out.producer(y))[2] == 0;
  const value_id all = inclusive ? y : running(x, false);

  std::int64_t bounds[2 * max_rank] = {};
  for (std::size_t d = 0; d < rank; ++d) bounds[rank + d] = ops::whole;
  const std::int64_t last = f.backwards ? 0 : piece.shape[dim] - 1;
  bounds[dim] = last;
  bounds[rank + static_cast<std::size_t>(dim)] = last + 1;
  tensor_type one = piece, totals = piece, line = piece;
  one.shape[dim] = totals.shape[dim] = 1;
  for (const auto& e : what.axes) totals.shape[dim] *= m.size(e.axis);
  line.shape = {};
  std::int64_t others[max_rank] = {};
  std::size_t count = 0;
  for (int d = 0; d < piece.shape.rank; ++d) {
    if (d == dim) continue;
    others[count++] = d;
    line.shape.push_back(piece.shape[d]);
  }
  const value_id whole[] = {all};
  const value_id total = append_op(def<op::slice>, whole, {bounds, 2 * rank}, one);
  const value_id gathered = collect(collective::all_gather, total, totals);
  note(one.bytes());
  const value_id own[] = {collect(collective::all_slice, running(gathered, true), one)};
  const value_id flat[] = {append_op(def<op::reshape>, own, {}, line)};
  const value_id both[] = {y, append_op(def<op::broadcast_in_dim>, flat, {others, count}, piece)};
  return append_op(combining_op(f.carry), both, {}, piece);
}

}  // namespace partita::spmd_detail
