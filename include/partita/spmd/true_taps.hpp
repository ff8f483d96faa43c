/// Ops that reduce over padding while they slide over elements that may be infinite: excludes the
/// padding from the reduction.
#pragma once

#include <cstdint>

#include <partita/core/loop_program.hpp>
#include <partita/ir/copy.hpp>
#include <partita/op/arithmetic.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/select.hpp>
#include <partita/op/slice.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::spmd_detail {

/// Appends to a device-local program a device's share of an op.
///
/// Let `size` taps be divided into blocks. Some devices have a full block, at most one has the
/// first r = size mod block taps, and the others have no taps:
///
///     f(x, w)  =>  select(start < size, f(x, w[:r]), 0)
///                + select(start + block <= size, f(x, w[r:]), 0)
///
/// If the taps are not sharded, the op uses the first `size` taps. Without padding among the taps,
/// the op is unchanged.
class true_taps {
 public:
  constexpr true_taps(const loop_program& c, op_id o) : c_(c), o_(o), all_(c.padded_taps_of(o)) {}

  constexpr bool any() const { return !all_.empty(); }
  /// `attrs` and `to` are those of the device's shard.
  constexpr value_id append(program& out, const vec<value_id>& operands,
                            span<const std::int64_t> attrs, const tensor_type& to) const {
    vec<std::int64_t> own(attrs.begin(), attrs.end());
    return append(out, 0, operands, own, to);
  }

 private:
  const loop_program& c_;
  op_id o_;
  vec<padded_taps> all_;

  constexpr const op_node& like() const { return c_.p.ops[o_]; }
  constexpr value_id add(program& out, const op_def& def, span<const value_id> operands,
                         span<const std::int64_t> attrs, const tensor_type& type) const {
    return append_for(out, like().marks, def, operands, attrs, type);
  }
  /// Appends the op restricted by the factors from index `i` on.
  constexpr value_id append(program& out, std::size_t i, const vec<value_id>& operands,
                            const vec<std::int64_t>& attrs, const tensor_type& to) const {
    if (i == all_.size())
      return add(out, *like().def, {operands.data(), operands.size()}, {attrs.data(), attrs.size()},
                 to);
    const padded_taps& taps = all_[i];
    std::int64_t pieces = 1;
    for (int axis : taps.axes) pieces *= c_.size(o_, axis);
    const auto some = [&](std::int64_t begin, std::int64_t count) {
      vec<value_id> given = operands;
      vec<std::int64_t> own = attrs;
      vec<tensor_type> types;
      for (value_id v : operands) types.push_back(out.type(v));
      narrow_taps(*like().def, c_.map, c_.map.at(o_, taps.factor), types, to, begin, count, own);
      given[static_cast<std::size_t>(taps.operand)] =
          part(out, operands[static_cast<std::size_t>(taps.operand)], taps.dim, begin, count);
      return append(out, i + 1, given, own, to);
    };
    if (pieces == 1) return some(0, taps.size);
    const std::int64_t full = taps.size / taps.block, rest = taps.size % taps.block;
    value_id sum = -1;
    if (rest > 0) sum = on_first(out, taps, full + 1, pieces, some(0, rest));
    if (full == 0) return sum;
    const value_id most = on_first(out, taps, full, pieces, some(rest, taps.block - rest));
    if (sum < 0) return most;
    const value_id both[] = {sum, most};
    return add(out, combining_op(c_.map.at(o_, taps.factor).combine), both, {}, to);
  }
  constexpr value_id part(program& out, value_id x, int dim, std::int64_t begin,
                          std::int64_t count) const {
    tensor_type t = out.type(x);
    if (t.shape[dim] == count) return x;
    const auto rank = static_cast<std::size_t>(t.shape.rank);
    std::int64_t bounds[2 * max_rank] = {};
    for (std::size_t d = 0; d < rank; ++d) bounds[rank + d] = ops::whole;
    bounds[dim] = begin;
    bounds[rank + static_cast<std::size_t>(dim)] = begin + count;
    t.shape[dim] = count;
    const value_id operands[] = {x};
    return add(out, def<op::slice>, operands, {bounds, 2 * rank}, t);
  }
  /// Returns x on the first `n` devices of a row, and the combiner's neutral element on the others.
  constexpr value_id on_first(program& out, const padded_taps& taps, std::int64_t n,
                              std::int64_t pieces, value_id x) const {
    if (n >= pieces) return x;
    const tensor_type number{dtype::i64, {}}, type = out.type(x);
    const value_id start = append_shard_start(out, taps.block, taps.axes, dtype::i64);
    out.ops.back().marks = like().marks;
    const std::int64_t bound[] = {n * taps.block},
                       less[] = {static_cast<std::int64_t>(ops::direction::lt)},
                       none[] = {neutral_bits(c_.map.at(o_, taps.factor).combine, type.element)};
    const value_id both[] = {start, add(out, def<op::constant>, {}, bound, number)};
    const value_id chosen[] = {add(out, def<op::compare>, both, less, {dtype::boolean, {}}), x,
                               add(out, def<op::constant>, {}, none, {type.element, {}})};
    return add(out, def<op::select>, chosen, {}, type);
  }
};

}  // namespace partita::spmd_detail
