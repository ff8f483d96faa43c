/// Names for values, by which tactics shard them.
#pragma once

#include <string_view>

#include <partita/dsl/apply.hpp>
#include <partita/dsl/tree.hpp>
#include <partita/op/identity.hpp>

namespace partita {

/// Names a value, or the leaves of a tree, so that tactics can refer to them: "h", or "h.up" for a
/// member. If several tags have one name, they become "h.0", "h.1", ... in the order in which the
/// model writes them, and "h" selects all of them. The cotangent of "h" is tagged "grad.h"; it is
/// sharded like "h" unless a tactic says otherwise.
template <Tree T>
constexpr T tag(std::string_view name, const T& tree) {
  T named = tree;
  for_each_leaf(
      [](auto& leaf, std::string_view path) {
        using Leaf = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (Leaf::is_valid) {
          builder* const b = leaf.context();
          if (b != nullptr) leaf = Leaf(b, ops::tag(*b, path, dsl_detail::captured(*b, leaf)));
        }
      },
      text(name), named);
  return named;
}

/// Names a value, or the leaves of a tree, that `evaluate` and `emulate` return in addition to the
/// outputs: `evaluate(f, x).probe("h")`. It is the tag "probe.h", not an output, so it changes
/// neither shardings nor collectives. (In loops and branches it is only a tag.)
///
/// ```cpp
/// const auto h = probe("h", matmul(x, w));
/// ```
template <Tree T>
[[nodiscard]] constexpr T probe(std::string_view name, const T& tree) {
  return tag(concat(op::probe_prefix, name), tree);
}

}  // namespace partita
