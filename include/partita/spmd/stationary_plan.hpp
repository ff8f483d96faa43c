/// Plans for products whose larger operand stays sharded: the collectives that move the other
/// operand and the result instead.
#pragma once

#include <cstdint>

#include <partita/spmd/product_loops.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// The movement of a value among n devices: one dimension is gathered and another one sliced along
/// the same axes. If only `sliced` is set, the value is a sum that is scattered.
///
/// Shapes    (g, s) -> (g n, s / n)
struct movement {
  int gathered = no_dim, sliced = no_dim;

  friend constexpr bool operator==(const movement&, const movement&) = default;
  constexpr bool none() const { return gathered == no_dim && sliced == no_dim; }
  constexpr collective::kind_type kind() const {
    if (sliced == no_dim) return collective::all_gather;
    return gathered == no_dim ? collective::reduce_scatter : collective::all_to_all;
  }
  constexpr tensor_type after(tensor_type t, std::int64_t n) const {
    if (gathered != no_dim) t.shape[gathered] *= n;
    if (sliced != no_dim) t.shape[sliced] /= n;
    return t;
  }
  /// `along` has the axes; its dimensions are ignored.
  constexpr collective over(const layout& along) const {
    collective what;
    what.kind = kind();
    if (what.kind == collective::all_to_all) {
      what.gathered = gathered;
      what.sliced = sliced;
    }
    for (const auto& e : along) what.axes.push_back(e.axis, sliced == no_dim ? gathered : sliced);
    return what;
  }
  /// The bytes that a device sends for a value of `bytes` bytes, times n / (n - 1).
  constexpr std::int64_t cost(std::int64_t bytes, std::int64_t n) const {
    if (none()) return 0;
    return kind() == collective::all_gather ? saturating_multiply(bytes, n) : bytes;
  }
};

/// The plan for an op that is linear in both of its operands: the operands are moved before it, the
/// result after it.
struct stationary_op {
  movement operands[2], result;
  layout along;
  tensor_type made;       ///< the type of its result, before that is moved
  op_id settled = -1;     ///< the collective that is removed
  std::int64_t cost = 0;  ///< in the unit of movement::cost
};

/// Plans one op at a time, a dot_general or a convolution. Cost: linear in its factors.
///
/// It looks for factors (see ir/tile_map.hpp) that a given subset of operand 0, operand 1 and
/// result have.
class stationary_planner {
 public:
  constexpr stationary_planner(const program& p, const mesh& m) : p_(p), mesh_(m), loops_(p) {}

  /// Plans an op whose operand `i` is gathered, so that the operand stays sharded. Returns false if
  /// that is impossible.
  constexpr bool gathered(op_id o, int i, op_id gather, stationary_op& plan) {
    const collective what = p_.collective_of(gather);
    const int tiled = dim_of_all(what.axes), other = 1 - i;
    if (!loops_.is_product(o) || tiled == no_dim) return false;
    loops_.find(o);
    const int f = loops_.factor_at(i, tiled), batch = factor_of(other == 0, other == 1, true);
    if (f < 0 || batch < 0 || !in_one_of(f, other, result)) return false;
    plan.operands[other] = {loops_.dim(batch, other), loops_.dim(f, other)};
    plan.result = {loops_.dim(f, result), loops_.dim(batch, result)};
    finish(o, gather, {loops_.dim(batch, result), loops_.dim(f, result)}, plan);
    return true;
  }
  /// Plans an op whose result is a sum that is scattered, so that only a shard is computed. Returns
  /// false if that is impossible.
  constexpr bool scattered(op_id o, op_id scatter, stationary_op& plan) {
    const collective what = p_.collective_of(scatter);
    const int tiled = dim_of_all(what.axes);
    if (!loops_.is_product(o) || tiled == no_dim || what.combine != combiner::add) return false;
    loops_.find(o);
    const int f = loops_.factor_at(result, tiled), summed = factor_of(true, true, false);
    if (f < 0 || summed < 0 || !in_one_of(f, 0, 1)) return false;
    for (int i = 0; i < 2; ++i) plan.operands[i] = {loops_.dim(summed, i), loops_.dim(f, i)};
    finish(o, scatter, {no_dim, tiled}, plan);
    return true;
  }

 private:
  static constexpr int result = product_loops::result;

  const program& p_;
  const mesh& mesh_;
  product_loops loops_;  ///< the loops of the op being planned

  /// The first factor that exactly the given operands, and the result if `of_result`, have; or -1.
  constexpr int factor_of(bool first, bool second, bool of_result) const {
    for (int f = 0; f < loops_.count(); ++f)
      if (loops_.has(f, 0) == first && loops_.has(f, 1) == second &&
          loops_.has(f, result) == of_result && (of_result || loops_.sums(f)) &&
          (!first || loops_.alone(f, 0)) && (!second || loops_.alone(f, 1)) &&
          (!of_result || loops_.alone(f, result)))
        return f;
    return -1;
  }
  /// True if exactly one of two operands or results has factor `f`, and the factor is in the result
  /// or summed.
  constexpr bool in_one_of(int f, int a, int b) const {
    return loops_.has(f, a) != loops_.has(f, b) && loops_.alone(f, loops_.has(f, a) ? a : b) &&
           (loops_.has(f, result) || loops_.sums(f));
  }
  /// `made` describes how the type of the op's result changes.
  constexpr void finish(op_id o, op_id settled, const movement& made, stationary_op& plan) const {
    const collective what = p_.collective_of(settled);
    const std::int64_t n = what.members(mesh_);
    plan.along = what.axes;
    plan.settled = settled;
    plan.made = made.after(p_.type(p_.op(o).result), n);
    plan.cost = plan.result.cost(plan.made.bytes(), n);
    for (int i = 0; i < 2; ++i)
      plan.cost =
          saturating_add(plan.cost, plan.operands[i].cost(p_.type(p_.operand(o, i)).bytes(), n));
  }
};

}  // namespace partita::spmd_detail
