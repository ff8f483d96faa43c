/// Functions with user-defined derivatives.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include <partita/dsl/region.hpp>
#include <partita/dsl/same_tree.hpp>
#include <partita/op/custom_vjp.hpp>

namespace partita {

namespace dsl_detail {

struct cotangent_sentence {
  constexpr text operator()(std::string_view given, std::string_view wanted) const {
    return concat("G004 custom_vjp: the backward function returns ", given,
                  "; the cotangent of an argument must have its type, ", wanted);
  }
};

/// Returns the values that the ops from `first` on use but do not compute, other than the arguments
/// and constants.
constexpr vec<value_id> used_from_outside(const builder& b, op_id first,
                                          const vec<value_id>& arguments) {
  const program& p = b.p;
  vec<char> known(p.types.size(), 0);
  vec<value_id> used;
  for (value_id v : arguments)
    if (v >= 0) known[v] = 1;
  for (op_id o = first; o < p.op_count(); ++o)
    for (value_id v : p.operands(o)) {
      const op_id made_by = p.producer(v);
      const bool outside = made_by < first || p.is(made_by, op_role::parameter);
      if (!outside || known[v]) continue;
      known[v] = 1;
      used.push_back(v);
    }
  return used;
}
/// Captures the leaves of a tree in `b` and returns the tree of captured values.
template <class T>
constexpr T bound_to(builder& b, const T& tree, vec<value_id>& values) {
  T bound = tree;
  for_each_leaf(
      [&](auto& leaf, std::string_view) {
        values.push_back(captured(b, leaf));
        leaf = std::remove_cvref_t<decltype(leaf)>(&b, values.back());
      },
      text(), bound);
  return bound;
}

}  // namespace dsl_detail

/// A function with a user-defined derivative (see `custom_vjp`).
template <class Forward, class Backward>
class function_with_vjp {
 public:
  /// Stores both functions (see `custom_vjp`).
  constexpr function_with_vjp(const Forward& forward, const Backward& backward)
      : forward_(forward), backward_(backward) {}

  /// Applies the forward function and returns its result.
  template <Tree... Args>
  requires(sizeof...(Args) > 0) constexpr auto operator()(const Args&... args) const {
    builder* const b = dsl_detail::active_of(args...);
    if (b == nullptr) return of_types(args...);
    vec<value_id> arguments;
    const std::tuple<Args...> bound{dsl_detail::bound_to(*b, args, arguments)...};
    const op_id begin = b->p.op_count();
    const auto given = std::apply(forward_, bound);
    if constexpr (!is_pair<std::remove_cvref_t<decltype(given)>>()) {
      return invalid_tensor{};
    } else {
      return with_derivative(*b, begin, arguments, bound, given);
    }
  }

 private:
  Forward forward_;
  Backward backward_;

  /// True if the forward function returned a pair. (A poisoned result follows an error that was
  /// already reported.)
  template <class Given>
  static constexpr bool is_pair() {
    if constexpr (dsl_detail::Poison<Given>) {
      return false;
    } else {
      constexpr bool pair = requires(const Given& g) {
        g.first;
        g.second;
      };
      static_assert(pair,
                    "partita: the forward function of a custom_vjp must return "
                    "std::pair{result, residuals}");
      if constexpr (pair)
        return !dsl_detail::Poison<decltype(std::declval<Given>().first)>;
      else
        return false;
    }
  }
  template <class... Args>
  constexpr auto of_types(const Args&... args) const {
    const auto given = forward_(args...);
    if constexpr (is_pair<std::remove_cvref_t<decltype(given)>>())
      return given.first;
    else
      return invalid_tensor{};
  }
  /// Wraps the cotangent of a single argument in a tuple, if it is not one.
  template <class Found, class... Args>
  static constexpr auto as_tuple(const Found& found, const std::tuple<Args...>&) {
    if constexpr (sizeof...(Args) == 1 && !dsl_detail::is_std_tuple<Found>::value)
      return std::tuple<Found>(found);
    else if constexpr (sizeof...(Args) == 1 && (std::is_same_v<Found, Args> && ...))
      return std::tuple<Found>(found);
    else
      return found;
  }
  template <class... Args, class Given>
  constexpr auto with_derivative(builder& b, op_id begin, const vec<value_id>& arguments,
                                 const std::tuple<Args...>& bound, const Given& given) const {
    using Result = std::remove_cvref_t<decltype(given.first)>;
    vec<value_id> results, inputs;
    dsl_detail::capture_leaves(results, b, given.first);
    dsl_detail::capture_leaves(inputs, b, given.second);
    const vec<value_id> used = dsl_detail::used_from_outside(b, begin, arguments);
    bool fits = false;
    const std::size_t own = inputs.size();
    builder& region = dsl_detail::nested_program(b, [&](builder& r) {
      const auto residuals = dsl_detail::bind_region(r, given.second);
      const auto cotangent = dsl_detail::bind_region(r, given.first);
      const auto found = as_tuple(backward_(residuals, cotangent), bound);
      using Found = std::remove_cvref_t<decltype(found)>;
      if constexpr (dsl_detail::same_tree<dsl_detail::cotangent_sentence, std::tuple<Args...>,
                                          Found>()) {
        fits = true;
        dsl_detail::return_from(r, found);
      }
    });
    if (!fits) b.p.error.record("P000", "custom_vjp: the backward function did not compile");
    dsl_detail::capture_list captures;
    captures.add(region);
    captures.place(region, own);
    inputs.insert_back(captures.outer.begin(), captures.outer.end());
    b.close_region(region);
    b.has_custom_vjp();
    const value_id out =
        ops::custom_vjp(b, results, arguments, used, inputs, static_cast<program&&>(region.p));
    return Result(dsl_detail::leaves_from(&b, out, given.first));
  }
};

/// Returns a function of tensors and trees whose derivative is user-defined: `custom_vjp(forward,
/// backward)(args...)`. `forward(args...)` returns std::pair{result, residuals}, and the function
/// returns the result. `backward(residuals, cotangent of the result)` returns the cotangents of the
/// arguments: a std::tuple of trees like them, or just the tree for a single argument.
///
/// ```cpp
/// constexpr auto clipped = custom_vjp(
///     [](const auto& x) { return std::pair{x, std::tuple{}}; },
///     [](const auto&, const auto& g) { return clamp(-1, g, 1); });
/// ```
///
/// Both functions consist of ordinary ops, which are partitioned, printed and run like all others.
/// The ops of `backward` count as derivatives in the named part in which the function is called.
/// Residuals that no gradient needs are not computed. The cotangent of an integer argument is not
/// used.
///
/// Errors    G004 a cotangent's type differs from its argument's; G005 a gradient is wanted of a
///           value that the forward function uses without receiving it as an argument
template <class Forward, class Backward>
constexpr function_with_vjp<Forward, Backward> custom_vjp(const Forward& forward,
                                                          const Backward& backward) {
  return {forward, backward};
}

}  // namespace partita
