/// Nested programs, traced from functions of trees of tensors. The functions may use tensors of the
/// enclosing model.
#pragma once

#include <partita/dsl/apply.hpp>
#include <partita/dsl/tree.hpp>

namespace partita {

namespace dsl_detail {

/// Traces a nested program with `trace(builder)`.
template <class Trace>
constexpr builder& nested_program(builder& b, const Trace& trace) {
  builder& r = b.open_region();
  trace(r);
  b.leave_region(r);
  return r;
}
template <class T>
constexpr void capture_leaves(vec<value_id>& out, builder& b, const T& tree) {
  for_each_leaf([&](const auto& leaf, std::string_view) { out.push_back(captured(b, leaf)); },
                text(), tree);
}
/// Returns a tree like `tree` whose leaves are consecutive values.
template <class T>
constexpr T leaves_from(builder* b, value_id first, const T& tree) {
  T result = tree;
  for_each_leaf(
      [&](auto& leaf, std::string_view) {
        leaf = std::remove_cvref_t<decltype(leaf)>(b, first < 0 ? first : first++);
      },
      text(), result);
  return result;
}
/// Returns a tree like `tree` whose leaves are new inputs of a nested program.
template <class T>
constexpr T bind_region(builder& r, const T& tree) {
  T bound = tree;
  for_each_leaf(
      [&](auto& leaf, std::string_view) {
        leaf = std::remove_cvref_t<decltype(leaf)>(&r, ops::parameter(r, "", leaf.type()));
      },
      text(), bound);
  return bound;
}
template <class T>
constexpr void return_from(builder& r, const T& tree) {
  vec<value_id> values;
  capture_leaves(values, r, tree);
  for (value_id v : values) r.p.outputs.push_back({v, {}});
}

/// The values that nested programs capture from the enclosing program, each value once.
struct capture_list {
  vec<value_id> outer;

  constexpr void add(const builder& r) {
    for (const auto& c : r.captures()) {
      bool known = false;
      for (value_id v : outer) known = known || v == c.outer;
      if (!known) outer.push_back(c.outer);
    }
  }
  /// Adds all captures to a region as inputs, in this order, from position `from` on.
  constexpr void place(builder& r, std::size_t from) const {
    if (r.failed()) return;
    vec<value_id> inputs;
    const auto own = r.p.inputs.size() - r.captures().size();
    for (std::size_t i = 0; i < from; ++i) inputs.push_back(r.p.inputs[i]);
    for (value_id v : outer) inputs.push_back(r.take(r.parent(), def<op::parameter>, v));
    for (std::size_t i = from; i < own; ++i) inputs.push_back(r.p.inputs[i]);
    r.p.inputs = inputs;
  }
};

}  // namespace dsl_detail

}  // namespace partita
