/// Ops on partial results: which of them commute with a pending reduction.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/prove/kernel/claim.hpp>
#include <partita/support/vec.hpp>

namespace partita::prove_detail {

/// True if a source value is zero everywhere.
constexpr bool is_zero_everywhere(const program& p, value_id v) {
  for (;;) {
    const op_id o = p.producer(v);
    const op_node& n = p.op(o);
    if (n.def->constant) return p.is_zero(v);
    const bool moves = n.def->id == def<op::broadcast_in_dim>.id ||
                       n.def->id == def<op::reshape>.id || n.def->id == def<op::transpose>.id;
    if (!moves) return false;
    v = p.operand(o, 0);
  }
}

/// Sets the reduction that is pending after a source op if it runs on these operands. False if the
/// op does not commute with it.
///
/// Ops on one operand that move elements commute with each reduction. Sums also commute with
/// negation, sums and differences of two pending values, products with a value that all devices
/// have, quotients by one, and a choice between pending values; zeros count as pending sums.
constexpr bool pending_after(const program& source, op_id s, const vec<shard_claim>& operands,
                             shard_claim& made) {
  int pending = 0, first = -1;
  for (int i = 0; i < static_cast<int>(operands.size()); ++i)
    if (!operands[i].pending.empty()) {
      ++pending;
      if (first < 0) first = i;
    }
  if (pending == 0) return true;
  const shard_claim& sum = operands[first];
  made.pending = sum.pending;
  made.combine = sum.combine;
  const bool adds = sum.combine == combiner::add;
  const op_node& n = source.op(s);
  const auto is = [&](const op_def& d) { return n.def->id == d.id; };
  int terms = pending;  // and zeros
  for (int i = 0; i < static_cast<int>(operands.size()); ++i) {
    const shard_claim& x = operands[i];
    if (x.pending.empty()) {
      if (!(x.varies() & sum.pending).empty()) return false;
      const bool decides = i == 0 && is(def<op::select>);
      if (adds && !decides && (x.starts_zero || is_zero_everywhere(source, x.of))) ++terms;
    } else if (x.pending != sum.pending || x.combine != sum.combine) {
      return false;
    }
  }
  const bool floats = is_floating(source.type(n.result).element);
  if (is(def<op::transpose>) || is(def<op::reshape>) || is(def<op::broadcast_in_dim>)) return true;
  if (is(def<op::reduce>))
    return n.operand_count == 1 && source.attrs(s)[0] == static_cast<std::int64_t>(sum.combine);
  if (!adds) return false;
  if (is(def<op::negate>)) return true;
  if (is(def<op::add>) || is(def<op::subtract>) || is(def<op::concatenate>))
    return terms == n.operand_count;
  if (is(def<op::multiply>) || is(def<op::dot_general>)) return pending == 1;
  if (is(def<op::divide>)) return floats && pending == 1 && first == 0;
  if (is(def<op::select>)) return operands[0].pending.empty() && terms == 2;
  if (is(def<op::convert>)) return floats && is_floating(source.type(source.operand(s, 0)).element);
  return false;
}

}  // namespace partita::prove_detail
