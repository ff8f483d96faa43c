/// Names for parts of a model, which assign the parts to meshes.
#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>

#include <partita/dsl/apply.hpp>
#include <partita/dsl/region.hpp>
#include <partita/dsl/tree.hpp>
#include <partita/support/kept_name.hpp>

namespace partita {

/// A function whose ops belong to a named part (see `named`).
template <class F>
class named_function {
 public:
  /// Stores the function and its name (see `named` and `scope`).
  constexpr named_function(std::string_view name, std::int64_t index, const F& f,
                           const std::source_location& where, bool is_part = true)
      : name_(name), index_(index), is_part_(is_part), where_(where), f_(f) {}

  /// Applies the function.
  template <class... Args>
  constexpr auto operator()(const Args&... args) const {
    static_assert((Tree<Args> || ...),
                  "partita: named(name, f)(args...), scope(name, f)(args...): at least one "
                  "argument must be a tree of tensors");
    builder* b = nullptr;
    const auto look = [&](const auto& arg) {
      if constexpr (Tree<decltype(arg)>)
        if (b == nullptr) b = dsl_detail::active_of(arg);
    };
    (look(args), ...);
    if (b != nullptr) {
      const text name = whole_name();
      if (is_part_) b->enter_scope(name.view());
      b->enter_place(name.view(), where_.file_name(), static_cast<int>(where_.line()));
    }
    auto result = f_(args...);
    if (b != nullptr) b->leave_place();
    if (b != nullptr && is_part_) b->leave_scope();
    return result;
  }

 private:
  kept_name name_;
  std::int64_t index_;
  bool is_part_;
  std::source_location where_;
  F f_;

  constexpr text whole_name() const {
    text name = name_.view();
    if (index_ >= 0) name << '.' << index_;
    return name;
  }
};

/// Returns f as a named part: `named("layer1", f)(x)` is f(x), and the ops that f emits belong to
/// part "layer1" of the program, as do their derivatives of any order. Parts may be nested. Each
/// call is a separate part.
template <class F>
constexpr named_function<F> named(
    std::string_view name, const F& f,
    const std::source_location& where = std::source_location::current()) {
  return {name, -1, f, where};
}
/// Returns f as a numbered part: `named("layers", 3, f)` is `named("layers.3", f)`.
template <class F>
constexpr named_function<F> named(
    std::string_view name, std::int64_t index, const F& f,
    const std::source_location& where = std::source_location::current()) {
  return {name, index, f, where};
}

/// Names ops for people: `scope("attention", f)(x)` is f(x), and reports and errors say "in
/// attention" about the ops that f emits and their derivatives. Scopes may be nested in scopes and
/// in named parts, which are scopes too ("in layers.3.attention"). Errors state the line as well.
/// The functions of `nn` are scopes of their names. A scope is not a part that can be assigned to a
/// mesh, and it changes nothing in the program.
template <class F>
constexpr named_function<F> scope(
    std::string_view name, const F& f,
    const std::source_location& where = std::source_location::current()) {
  return {name, -1, f, where, false};
}

/// Names the op that computes each tensor of a tree, as a nested part of the current part, and
/// returns the tree. An input gets the name too, so that it can be assigned to a mesh. (Constants
/// are computed where they are used, whatever their names.)
template <Tree T>
constexpr T named_tensor(std::string_view name, const T& tree) {
  for_each_leaf(
      [&](const auto& leaf, std::string_view) {
        builder* const b = leaf.context();
        if (b == nullptr || b->failed() || leaf.id() < 0) return;
        b->name_op(b->p.op(b->p.producer(leaf.id())).marks.source, name);
      },
      text(), tree);
  return tree;
}

}  // namespace partita
