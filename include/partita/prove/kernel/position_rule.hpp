/// The rule of positions: an iota that starts where a shard starts is a block of a source's iota.
#pragma once

#include <cstdint>

#include <partita/op/constant.hpp>
#include <partita/prove/kernel/claim.hpp>
#include <partita/prove/kernel/source_values.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::prove_detail {

/// Law       an iota of n positions, plus the start of a shard among shards of n positions along
///           some axes, is the block of an iota that these axes slice
constexpr shard_claim block_of_iota(const source_values& values, const program& local, op_id add,
                                    const mesh& m) {
  shard_claim made;
  for (int side = 0; side < 2 && !made.known(); ++side) {
    const op_id iota = local.producer(local.operand(add, side)),
                start = local.producer(local.operand(add, 1 - side));
    if (local.op(iota).def->id != def<op::iota>.id ||
        local.op(start).def->id != def<op::shard_start>.id)
      continue;
    const int dim = static_cast<int>(local.attrs(iota)[0]);
    const tensor_type& here = local.type(local.op(iota).result);
    const axis_list axes = op::shard_start::axes(local.attrs(start));
    std::int64_t positions = here.shape[dim];
    if (op::shard_start::distance(local.attrs(start)) != positions) continue;
    for (const int a : axes) positions *= m.size(a);
    std::int64_t most = 0;  // (positions after the end are padding)
    for (op_id s = values.first(*local.op(iota).def, local.attrs(iota), {}); s >= 0;
         s = values.next(s)) {
      const tensor_type& whole = values.source().type(values.source().op(s).result);
      bool fits = whole.element == here.element && whole.shape.rank == here.shape.rank;
      for (int d = 0; fits && d < here.shape.rank; ++d)
        fits = d == dim ? whole.shape[d] > most && whole.shape[d] <= positions &&
                              whole.shape[d] <= op::iota::exact_up_to(here.element)
                        : whole.shape[d] == here.shape[d];
      if (!fits) continue;
      most = whole.shape[dim];
      made.of = values.source().op(s).result;
    }
    for (const int a : axes)
      if (m.size(a) > 1) made.sharding.push_back(a, dim);
  }
  return made;
}

}  // namespace partita::prove_detail
