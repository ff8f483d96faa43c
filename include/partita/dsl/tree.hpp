/// Parameter trees: plain structs (Boost.Hana), arrays and tuples of tensors.
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <boost/hana/accessors.hpp>
#include <boost/hana/concept/struct.hpp>
#include <boost/hana/core/to.hpp>
#include <boost/hana/define_struct.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/string.hpp>

#include <partita/dsl/tensor.hpp>
#include <partita/support/text.hpp>

namespace partita {

namespace dsl_detail {

/// A std::array, a std::vector, or a class with the same interface.
template <class T>
concept Sequence = requires(const T& t) {
  typename T::value_type;
  t.size();
  t[0];
};

template <class T>
struct is_std_tuple : std::false_type {};
template <class... T>
struct is_std_tuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct is_std_tuple<std::pair<A, B>> : std::true_type {};

template <class T>
concept HanaStruct = boost::hana::Struct<T>::value;

}  // namespace dsl_detail

/// A tensor, or a Hana struct, std::array, std::vector, std::tuple or std::pair of trees.
template <class T>
concept Tree = Tensor<T> || dsl_detail::Sequence<std::remove_cvref_t<T>> ||
    dsl_detail::is_std_tuple<std::remove_cvref_t<T>>::value ||
    dsl_detail::HanaStruct<std::remove_cvref_t<T>>;

namespace dsl_detail {

/// Visits the leaves of a tree. `path` is the name of the tree; it is extended while a child is
/// visited.
template <class F, class T>
constexpr void visit_leaves(const F& f, text& path, T& tree) {
  using U = std::remove_cvref_t<T>;
  const std::size_t length = path.size();
  const auto visit_child = [&](const auto& part, auto& child) {
    if (length > 0) path << '.';
    path << part;
    visit_leaves(f, path, child);
    path.truncate(length);
  };
  if constexpr (Tensor<U>) {
    f(tree, path.view());
  } else if constexpr (dsl_detail::Sequence<U>) {
    for (std::size_t i = 0; i < tree.size(); ++i) visit_child(i, tree[i]);
  } else if constexpr (dsl_detail::is_std_tuple<U>::value) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (visit_child(I, std::get<I>(tree)), ...); }
    (std::make_index_sequence<std::tuple_size_v<U>>{});
  } else {
    boost::hana::for_each(boost::hana::accessors<U>(), [&](const auto& member) {
      const auto get = boost::hana::second(member);
      const std::string_view name = boost::hana::to<const char*>(boost::hana::first(member));
      visit_child(name, get(tree));
    });
  }
}

}  // namespace dsl_detail

/// Calls f(leaf, path) for every tensor of a tree, in declaration order. Paths join member names
/// and indices with dots: "layers.3.attention.qkv".
template <class F, class T>
constexpr void for_each_leaf(const F& f, const text& path, T& tree) {
  text extended = path;
  dsl_detail::visit_leaves(f, extended, tree);
}

namespace dsl_detail {

template <class F, class T, class... Rest>
constexpr void assign_leaves(const F& f, T& out, const Rest&... in) {
  if constexpr (Tensor<T>) {
    out = f(in...);
  } else if constexpr (Sequence<T>) {
    for (std::size_t i = 0; i < out.size(); ++i) assign_leaves(f, out[i], in[i]...);
  } else if constexpr (is_std_tuple<T>::value) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto one = [&]<std::size_t J>(std::integral_constant<std::size_t, J>) {
        assign_leaves(f, std::get<J>(out), std::get<J>(in)...);
      };
      (one(std::integral_constant<std::size_t, I>{}), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    boost::hana::for_each(boost::hana::accessors<T>(), [&](const auto& member) {
      const auto get = boost::hana::second(member);
      assign_leaves(f, get(out), get(in)...);
    });
  }
}
}  // namespace dsl_detail

namespace dsl_detail {
/// Returns the open program that the leaves of some trees belong to; null for unbound leaves.
template <class... Trees>
constexpr builder* active_of(const Trees&... trees) {
  builder* b = nullptr;
  (for_each_leaf(
       [&](const auto& leaf, std::string_view) {
         if (b == nullptr && leaf.context() != nullptr) b = &leaf.context()->active();
       },
       text(), trees),
   ...);
  return b;
}
}  // namespace dsl_detail

/// Returns a tree of the same type whose leaves are f(leaf, leaves of the other trees...).
template <class F, Tree T, class... Rest>
constexpr T map_leaves(const F& f, const T& tree, const Rest&... rest) {
  T result = tree;
  dsl_detail::assign_leaves(f, result, tree, rest...);
  return result;
}

}  // namespace partita
