/// Barriers between ops.
#pragma once

#include <partita/dsl/region.hpp>

namespace partita {

/// Returns the same tree. No pass moves an op across the barrier.
template <Tree T>
constexpr T optimization_barrier(const T& tree) {
  builder* b = dsl_detail::active_of(tree);
  if (b == nullptr) return tree;
  vec<value_id> operands;
  dsl_detail::capture_leaves(operands, *b, tree);
  return dsl_detail::leaves_from(b, ops::optimization_barrier(*b, operands), tree);
}

}  // namespace partita
