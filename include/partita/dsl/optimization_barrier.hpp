/// Values that stay together.
#pragma once

#include <partita/dsl/region.hpp>

namespace partita {

/// The same tree, whose values are passed on together: nothing is moved across.
template <Tree T>
constexpr T optimization_barrier(const T& tree) {
  builder* b = dsl_detail::active_of(tree);
  if (b == nullptr) return tree;
  vec<value_id> operands;
  dsl_detail::take_leaves(operands, *b, tree);
  return dsl_detail::leaves_from(b, ops::optimization_barrier(*b, operands), tree);
}

}  // namespace partita
