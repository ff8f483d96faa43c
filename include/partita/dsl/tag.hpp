/// Names for values, by which tactics place them.
#pragma once

#include <string_view>

#include <partita/dsl/apply.hpp>
#include <partita/dsl/tree.hpp>
#include <partita/op/identity.hpp>

namespace partita {

/// Gives a value, or the leaves of a tree, names that tactics can refer to: "h", or "h.up" of a
/// member. Where several have one name, they are "h.0", "h.1", ... in the order in which the model
/// writes them; "h" selects all of them. The cotangent of "h" is tagged "grad.h", and lies as "h"
/// does, unless a tactic says otherwise.
template <Tree T>
constexpr T tag(std::string_view name, const T& tree) {
  T named = tree;
  for_each_leaf(
      [](auto& leaf, std::string_view path) {
        using Leaf = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (Leaf::is_valid) {
          builder* const b = leaf.context();
          if (b != nullptr) leaf = Leaf(b, ops::tag(*b, path, dsl_detail::taken(*b, leaf)));
        }
      },
      text(name), named);
  return named;
}

/// A value, or the leaves of a tree, that `evaluate` and `emulate` hand out beside the outputs:
/// `evaluate(f, x).probe("h")`. It is the tag "probe.h", no output: it changes neither the
/// shardings nor the collectives. (Inside of loops and branches it is only a tag.)
///
/// ```cpp
/// const auto h = probe("h", matmul(x, w));
/// ```
template <Tree T>
[[nodiscard]] constexpr T probe(std::string_view name, const T& tree) {
  return tag(concat(op::probe_prefix, name), tree);
}

}  // namespace partita
