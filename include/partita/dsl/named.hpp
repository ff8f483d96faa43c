/// Names for parts of a model, by which they are given to meshes.
#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>

#include <partita/dsl/apply.hpp>
#include <partita/dsl/region.hpp>
#include <partita/dsl/tree.hpp>
#include <partita/support/kept_name.hpp>

namespace partita {

/// A function whose ops have a name, see `named`.
template <class F>
class named_function {
 public:
  constexpr named_function(std::string_view name, std::int64_t index, const F& f,
                           const std::source_location& where, bool is_part = true)
      : name_(name), index_(index), is_part_(is_part), where_(where), f_(f) {}

  template <class... Args>
  constexpr auto operator()(const Args&... args) const {
    static_assert((Tree<Args> || ...),
                  "partita: named(name, f)(args...), scope(name, f)(args...): one argument at "
                  "least is a tree of tensors");
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

/// `named("layer1", f)(x)` is f(x); the ops that f writes are of the part "layer1" of the program,
/// as are their derivatives, of any order. Parts may stand in parts; each call is one by itself.
template <class F>
constexpr named_function<F> named(
    std::string_view name, const F& f,
    const std::source_location& where = std::source_location::current()) {
  return {name, -1, f, where};
}
/// One of many: `named("layers", 3, f)` is `named("layers.3", f)`.
template <class F>
constexpr named_function<F> named(
    std::string_view name, std::int64_t index, const F& f,
    const std::source_location& where = std::source_location::current()) {
  return {name, index, f, where};
}

/// `scope("attention", f)(x)` is f(x); reports and errors say "in attention" of the ops that f
/// writes and of their derivatives. Scopes may stand in scopes and in named parts, which are scopes
/// as well ("in layers.3.attention"); a mistake names the line too; the functions of `nn` are
/// scopes of their names. A scope is for people only: it is no part that is given to a mesh, and
/// changes nothing.
template <class F>
constexpr named_function<F> scope(
    std::string_view name, const F& f,
    const std::source_location& where = std::source_location::current()) {
  return {name, -1, f, where, false};
}

/// Gives what makes each tensor of a tree a name, as a part of the part it is in; for an input it
/// is as if the input were assigned by name. Gives the tree. (Constants are made where they are
/// used, whatever their names.)
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
