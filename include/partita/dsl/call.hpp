/// Named computations.
#pragma once

#include <string_view>
#include <tuple>

#include <partita/dsl/region.hpp>
#include <partita/dsl/same_tree.hpp>

namespace partita {

/// Applies f as a named computation: one op in the program, with a nested program. `f` may use
/// tensors of the enclosing function.
template <class F, class... Args>
constexpr auto call(std::string_view name, const F& f, const Args&... args) {
  using Result = std::remove_cvref_t<decltype(f(args...))>;
  if constexpr (dsl_detail::Poison<Result>) {
    return invalid_tensor{};
  } else {
    builder* b = dsl_detail::active_of(args...);
    if (b == nullptr) return Result{};
    vec<value_id> operands;
    (dsl_detail::capture_leaves(operands, *b, args), ...);
    const std::size_t own = operands.size();
    Result result{};
    builder& region = dsl_detail::nested_program(*b, [&](builder& r) {
      const std::tuple<Args...> bound{dsl_detail::bind_region(r, args)...};
      result = std::apply(f, bound);
      dsl_detail::return_from(r, result);
    });
    dsl_detail::capture_list captures;
    captures.add(region);
    captures.place(region, own);
    operands.insert_back(captures.outer.begin(), captures.outer.end());
    b->close_region(region);
    return dsl_detail::leaves_from(
        b, ops::call(*b, name, operands, static_cast<program&&>(region.p)), result);
  }
}

}  // namespace partita
