/// Branches. Their functions may use tensors of the enclosing model.
#pragma once

#include <tuple>
#include <utility>

#include <partita/dsl/elementwise.hpp>
#include <partita/dsl/region.hpp>
#include <partita/dsl/same_tree.hpp>

namespace partita {

namespace dsl_detail {

/// Error texts for trees and arguments of the wrong type.
template <std::size_t Branch>
struct branch_sentence {
  constexpr text operator()(const text& given, const text& wanted) const {
    return concat("S185 case: branch ", Branch, " returns ", given, "; branch 0 returns ", wanted);
  }
};
template <fixed_text Op, fixed_text What>
struct argument_sentence {
  constexpr text operator()(const text& given, const text& wanted) const {
    return concat("S186 ", Op.view(), ": the ", What.view(), " is ", given, "; ", wanted,
                  " is needed");
  }
};

}  // namespace dsl_detail

/// Applies the branch with number `index` to the arguments. An index out of range selects the last
/// branch. Branches may use tensors of the enclosing function and must return trees of one type.
///
/// Shapes    index () of i32
/// Errors    S185 branches disagree, S186 the index is not an i32 scalar
template <Tensor Index, class... Branches, class... Args>
constexpr auto case_of(const Index& index, const std::tuple<Branches...>& branches,
                       const Args&... args) {
  using Result = std::remove_cvref_t<decltype(std::get<0>(branches)(args...))>;
  using results =
      std::tuple<std::remove_cvref_t<decltype(std::declval<const Branches&>()(args...))>...>;
  constexpr bool agree = []<std::size_t... I>(std::index_sequence<I...>) {
    return (dsl_detail::same_tree<dsl_detail::branch_sentence<I>, Result,
                                  std::tuple_element_t<I, results>>() &&
            ...);
  }
  (std::index_sequence_for<Branches...>{});
  if constexpr (!dsl_detail::same_tree<dsl_detail::argument_sentence<"case", "index">,
                                       tensor<std::int32_t>, Index>() ||
                !agree || dsl_detail::Poison<Result>) {
    return invalid_tensor{};
  } else {
    builder* b = dsl_detail::active_of(index, args...);
    builder* regions[sizeof...(Branches)] = {};
    vec<value_id> operands;
    Result like{};
    if (b == nullptr) return like;
    (dsl_detail::capture_leaves(operands, *b, args), ...);
    const std::size_t own = operands.size();
    std::size_t r = 0;
    dsl_detail::capture_list captures;
    const auto trace_branch = [&](const auto& f) {
      builder& region = dsl_detail::nested_program(*b, [&](builder& nested) {
        const std::tuple<Args...> bound{dsl_detail::bind_region(nested, args)...};
        const Result result = std::apply(f, bound);
        if (r == 0) like = result;
        dsl_detail::return_from(nested, result);
      });
      regions[r++] = &region;
      captures.add(region);
    };
    std::apply([&](const auto&... f) { (trace_branch(f), ...); }, branches);
    vec<program> list;
    for (builder* region : regions) {
      captures.place(*region, own);
      b->close_region(*region);
      list.push_back(static_cast<program&&>(region->p));
    }
    operands.insert_back(captures.outer.begin(), captures.outer.end());
    const value_id number = dsl_detail::captured(*b, index);
    return dsl_detail::leaves_from(
        b, ops::case_of(*b, number, operands, static_cast<vec<program>&&>(list)), like);
  }
}

/// Returns if_true(args...) if the predicate (i1 scalar) is true, otherwise if_false(args...).
///
/// Errors    S185 branches disagree (if_false is branch 0), S186 the predicate is not an i1 scalar
template <Tensor Predicate, class True, class False, class... Args>
constexpr auto cond(const Predicate& predicate, const True& if_true, const False& if_false,
                    const Args&... args) {
  if constexpr (!dsl_detail::same_tree<dsl_detail::argument_sentence<"cond", "predicate">,
                                       tensor<bool>, Predicate>())
    return invalid_tensor{};
  else
    return case_of(convert<std::int32_t>(predicate), std::tuple<False, True>{if_false, if_true},
                   args...);
}

}  // namespace partita
