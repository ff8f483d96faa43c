/// Error texts for types that are not trees of tensors.
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <partita/dsl/tree.hpp>

namespace partita {

template <Tree T>
struct output_spec;

namespace dsl_detail {

/// Returns a type as the user wrote it, as far as the compiler preserves it.
template <class T>
constexpr std::string_view type_name() {
#if defined(__clang__)
  constexpr std::string_view all = __PRETTY_FUNCTION__, before = "T = ";
  return all.substr(all.find(before) + before.size(),
                    all.size() - 1 - all.find(before) - before.size());
#else
  constexpr std::string_view all = __PRETTY_FUNCTION__, before = "T = ";
  constexpr std::size_t begin = all.find(before) + before.size();
  return all.substr(begin, all.find(';', begin) - begin);
#endif
}

template <class T>
struct is_output : std::false_type {};
template <class T>
struct is_output<output_spec<T>> : std::true_type {};

/// An output whose value is not a tree.
template <class T>
struct invalid_output {};

template <class T>
struct has_outputs : std::false_type {};
template <class... T>
struct has_outputs<std::tuple<T...>>
    : std::bool_constant<sizeof...(T) != 0 && (is_output<T>::value && ...)> {};
template <class A, class B>
struct has_outputs<std::pair<A, B>> : has_outputs<std::tuple<A, B>> {};

template <class T>
struct tree_of_output;
template <class T>
struct tree_of_output<output_spec<T>> {
  using type = T;
};
template <class T>
struct tree_of_output<invalid_output<T>> {
  using type = T;
};

/// Returns why a type is not a tree of tensors, and how to fix it; empty for a tree.
template <class T>
constexpr text why_not_tree();

template <class T, std::size_t... I>
constexpr text why_not_tree_of_elements(std::index_sequence<I...>) {
  text found;
  const auto look = [&](text (*each)()) {
    if (found.empty()) found = each();
  };
  (look(&why_not_tree<std::remove_cvref_t<std::tuple_element_t<I, T>>>), ...);
  return found;
}
template <class T, class... Accessors>
constexpr text why_not_tree_of_members(const boost::hana::tuple<Accessors...>&) {
  text found;
  const auto look = [&](text (*each)()) {
    if (found.empty()) found = each();
  };
  (look(&why_not_tree<std::remove_cvref_t<decltype(boost::hana::second(
            std::declval<const Accessors&>())(std::declval<T&>()))>>),
   ...);
  return found;
}

template <class T>
constexpr text why_not_tree() {
  if constexpr (Tensor<T>) {
    return {};
  } else if constexpr (Sequence<T>) {
    return why_not_tree<std::remove_cvref_t<typename T::value_type>>();
  } else if constexpr (is_std_tuple<T>::value) {
    return why_not_tree_of_elements<T>(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (HanaStruct<T>) {
    return why_not_tree_of_members<T>(boost::hana::accessors<T>());
  } else if constexpr (requires { typename tree_of_output<T>::type; }) {
    const text why = why_not_tree<typename tree_of_output<T>::type>();
    if (!why.empty()) return concat("an output that is ", why);
    return "an output within a tree or next to something that is not an output; return outputs "
           "alone or in a std::tuple of outputs";
  } else if constexpr (std::is_arithmetic_v<T>) {
    return concat("a number (", type_name<T>(),
                  "); pt::full_like(x, number) turns it into a tensor");
  } else if constexpr (std::is_class_v<T>) {
    return concat("a ", type_name<T>(), ", whose members are not declared; declare them with ",
                  "BOOST_HANA_DEFINE_STRUCT(", type_name<T>(), ", (type, member), ...)");
  } else {
    return concat("a ", type_name<T>());
  }
}

/// Returns why a model's result type is not accepted; empty if it is.
template <class Result>
constexpr text why_not_result() {
  if constexpr (is_output<Result>::value) {
    if (why_not_tree<typename tree_of_output<Result>::type>().empty()) return {};
    return why_not_tree<Result>();
  } else if constexpr (has_outputs<Result>::value) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      text found;
      const auto look = [&](text (*each)()) {
        if (found.empty()) found = each();
      };
      (look(&why_not_result<std::tuple_element_t<I, Result>>), ...);
      return found;
    }
    (std::make_index_sequence<std::tuple_size_v<Result>>{});
  } else {
    return why_not_tree<Result>();
  }
}

}  // namespace dsl_detail
}  // namespace partita
