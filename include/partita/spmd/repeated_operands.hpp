/// Finds operands of an op that are the same value in the same layout.
#pragma once

#include <partita/spmd/pending_sums.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// True if two operands may be the same value; a quick check that rules out most ops.
constexpr bool may_repeat(const value_id* values, int count) {
  return count > 2 || (count == 2 && values[0] == values[1]);
}

/// Finds operands of an op that are the same value in the same layout.
///
/// Cost: constant per operand, if an op needs each value in few layouts.
class repeated_operands {
 public:
  constexpr explicit repeated_operands(const core_program& c) : c_(c) {}

  /// Returns an earlier operand that is the same as this one, or -1. Call it for one op at a time,
  /// and for its operands in order.
  constexpr int before(op_id o, int operand, const layout& want, const pending_sums& sums) {
    const op_node& n = sums.view().ops[o];
    const int count = n.operand_count;
    if (count <= few) {
      if (operand == 0) return -1;
      const value_id* values = sums.view().operands + n.operand_begin;
      for (int i = 0; i < operand; ++i)
        if (values[i] == values[operand] && sums.required_layout({o, i}) == want) return i;
      return -1;
    }
    latest_.resize(c_.p.types.size(), -1);
    previous_.resize(c_.p.operands(o).size(), -1);
    int& last = latest_[c_.p.operand(o, operand)];
    int same = last;
    while (same >= 0 && !is_same(o, same, operand, want, sums)) same = previous_[same];
    if (same < 0) {
      previous_[operand] = last;
      last = operand;
    }
    if (operand + 1 == count)
      for (value_id v : c_.p.operands(o)) latest_[v] = -1;
    return same;
  }

 private:
  static constexpr int few = 8;
  const core_program& c_;
  vec<int> latest_;    ///< by value: the last distinct operand that is this value, or -1
  vec<int> previous_;  ///< by operand: the previous distinct operand with the same value

  constexpr bool is_same(op_id o, int i, int operand, const layout& want,
                         const pending_sums& sums) const {
    return c_.p.operand(o, i) == c_.p.operand(o, operand) && sums.required_layout({o, i}) == want;
  }
};

}  // namespace partita::spmd_detail
