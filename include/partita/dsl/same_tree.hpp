/// Checks that two trees have one type, and messages that state where they first differ.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <partita/dsl/tree.hpp>
#include <partita/support/static_error.hpp>

namespace partita {

namespace dsl_detail {

template <class T>
concept Poison = std::is_same_v<std::remove_cvref_t<T>, invalid_tensor>;

/// Returns a short description of a tree type for messages.
template <class T>
constexpr text description_of() {
  if constexpr (Tensor<T>)
    return concat(T::static_type);
  else if constexpr (is_std_tuple<T>::value)
    return concat("a tuple of ", std::tuple_size_v<T>);
  else if constexpr (Sequence<T> && requires { std::tuple_size<T>::value; })
    return concat("an array of ", std::tuple_size_v<T>);
  else if constexpr (Tree<T>)
    return concat(Sequence<T> ? "a sequence" : "a struct");
  else
    return concat("no tensor");
}
/// The first place where two tree types differ, and the descriptions of both there. (A tree that
/// follows from a reported error has no differences.)
struct tree_difference {
  bool found = false;
  text path, given, wanted;
};
template <class Given, class Wanted>
constexpr void find_difference(tree_difference& d, const text& path) {
  const auto child = [&]<class G, class W>(std::type_identity<G>, std::type_identity<W>,
                                           std::size_t i) {
    text name = path;
    if (!path.empty()) name << '.';
    name << i;
    find_difference<G, W>(d, name);
  };
  if constexpr (std::is_same_v<Given, Wanted> || Poison<Given> || Poison<Wanted>) {
    return;
  } else if constexpr (is_std_tuple<Given>::value && is_std_tuple<Wanted>::value) {
    if constexpr (std::tuple_size_v<Given> == std::tuple_size_v<Wanted>)
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        (child(std::type_identity<std::tuple_element_t<I, Given>>{},
               std::type_identity<std::tuple_element_t<I, Wanted>>{}, I),
         ...);
      }
    (std::make_index_sequence<std::tuple_size_v<Given>>{});
  } else if constexpr (Sequence<Given> && Sequence<Wanted>) {
    if (description_of<Given>() == description_of<Wanted>())
      return child(std::type_identity<typename Given::value_type>{},
                   std::type_identity<typename Wanted::value_type>{}, 0);
  }
  if (!d.found) {
    d = {true, path, description_of<Given>(), description_of<Wanted>()};
    if (d.given == d.wanted) d.wanted = "another one";
  }
}

/// Composes messages such as "S182 while_loop: the body returns tensor<4x5xf32> as 1.0; the carried
/// value is tensor<4x4xf32>".
template <class Sentence, class Given, class Wanted>
struct tree_message {
  constexpr text operator()() const {
    tree_difference d;
    find_difference<Given, Wanted>(d, text());
    if (!d.found) return {};
    if (!d.path.empty()) d.given << " as " << d.path;
    return Sentence{}(d.given, d.wanted);
  }
};

/// True if `Given` is the required tree type; otherwise reports an error.
template <class Sentence, class Wanted, class Given>
constexpr bool same_tree() {
  if constexpr (!std::is_same_v<Given, Wanted>)
    report_static_error<tree_message<Sentence, Given, Wanted>>();
  return std::is_same_v<Given, Wanted>;
}

}  // namespace dsl_detail

}  // namespace partita
