/// Loops. Their bodies may use tensors of the enclosing model.
#pragma once

#include <tuple>
#include <utility>

#include <partita/dsl/elementwise.hpp>
#include <partita/dsl/region.hpp>
#include <partita/dsl/same_tree.hpp>
#include <partita/op/scan.hpp>

namespace partita {

namespace dsl_detail {

/// Error texts for trees of the wrong type.
template <fixed_text Loop>
struct body_sentence {
  constexpr text operator()(const text& given, const text& wanted) const {
    return concat("S182 ", Loop.view(), ": the body returns ", given, "; the carried value is ",
                  wanted);
  }
};
struct condition_sentence {
  constexpr text operator()(const text& given, const text& wanted) const {
    return concat("S182 while_loop: the condition returns ", given, "; ", wanted, " is needed");
  }
};

}  // namespace dsl_detail

/// Repeats body(carried) while condition(carried) is true. Both may use tensors of the enclosing
/// function. It has no reverse mode; use `scan` or `for_loop` if a gradient is needed.
///
/// Shapes    carried: a tree; condition: tree -> i1 scalar; body: tree -> tree of the same type
/// Errors    S182 the body changes the type, or the condition does not return an i1 scalar; G002 a
///           gradient is wanted
template <class Condition, class Body, Tree Carry>
constexpr Carry while_loop(const Condition& condition, const Body& body, const Carry& init) {
  using Next = std::remove_cvref_t<decltype(body(init))>;
  using Test = std::remove_cvref_t<decltype(condition(init))>;
  if constexpr (!dsl_detail::same_tree<dsl_detail::body_sentence<"while_loop">, Carry, Next>() ||
                !dsl_detail::same_tree<dsl_detail::condition_sentence, tensor<bool>, Test>()) {
    return dsl_detail::leaves_from(nullptr, poisoned, init);
  } else {
    builder* b = dsl_detail::active_of(init);
    if (b == nullptr) return init;
    vec<value_id> operands;
    dsl_detail::capture_leaves(operands, *b, init);
    const std::size_t own = operands.size();
    builder* test = &dsl_detail::nested_program(*b, [&](builder& r) {
      dsl_detail::return_from(r, condition(dsl_detail::bind_region(r, init)));
    });
    builder* step = &dsl_detail::nested_program(*b, [&](builder& r) {
      dsl_detail::return_from(r, body(dsl_detail::bind_region(r, init)));
    });
    dsl_detail::capture_list captures;
    captures.add(*test);
    captures.add(*step);
    captures.place(*test, own);
    captures.place(*step, own);
    for (std::size_t i = 0; i < captures.outer.size() && !step->failed(); ++i) {
      operands.push_back(captures.outer[i]);
      step->p.outputs.push_back({step->p.inputs[own + i], {}});
    }
    b->close_region(*test);
    b->close_region(*step);
    return dsl_detail::leaves_from(b,
                                   ops::while_loop(*b, operands, static_cast<program&&>(test->p),
                                                   static_cast<program&&>(step->p)),
                                   init);
  }
}

/// A placeholder for the slices or stacked results of a body without any.
struct nothing {};
constexpr void for_each_leaf(const auto&, const text&, nothing&) {}
constexpr void for_each_leaf(const auto&, const text&, const nothing&) {}

namespace dsl_detail {

/// True for the results of scan's body: std::pair{carried, stacked}.
template <class T>
struct scan_step : std::false_type {};
template <class C, class Y>
struct scan_step<std::pair<C, Y>> : std::true_type {};
template <class Step>
struct not_a_pair_message {
  constexpr text operator()() const {
    return "S182 scan: the body does not return a std::pair of the carried value and the stacked "
           "results";
  }
};

/// The type of slices of a tensor, or of a tuple of tensors, along dimension 0.
template <class X>
struct slices;
template <class T, std::int64_t N, std::int64_t... E>
struct slices<tensor<T, N, E...>> {
  using type = tensor<T, E...>;
};
template <class... X>
struct slices<std::tuple<X...>> {
  using type = std::tuple<typename slices<X>::type...>;
};
template <>
struct slices<nothing> {
  using type = nothing;
};
/// The type of N tensors, or tuples of tensors, stacked.
template <std::int64_t N, class Y>
struct stacked;
template <std::int64_t N, class T, std::int64_t... E>
struct stacked<N, tensor<T, E...>> {
  using type = tensor<T, N, E...>;
};
template <std::int64_t N, class... Y>
struct stacked<N, std::tuple<Y...>> {
  using type = std::tuple<typename stacked<N, Y>::type...>;
};
template <std::int64_t N>
struct stacked<N, nothing> {
  using type = nothing;
};

/// Returns the first extent of the first leaf, static if the leaf's is.
template <class T, std::int64_t N, std::int64_t... E>
constexpr extent<N> leading(const tensor<T, N, E...>& x) {
  return {x.shape()[0]};
}
template <class X, class... Xs>
constexpr auto leading(const std::tuple<X, Xs...>& xs) {
  return leading(std::get<0>(xs));
}

template <class Slices>
constexpr Slices bind_slices(builder& r, const auto& stacked) {
  vec<tensor_type> types;
  for_each_leaf(
      [&](const auto& leaf, std::string_view) { types.push_back(op::scan::slice_of(leaf.type())); },
      text(), stacked);
  Slices bound{};
  std::size_t next = 0;
  for_each_leaf(
      [&](auto& leaf, std::string_view) {
        leaf = std::remove_cvref_t<decltype(leaf)>(&r, ops::parameter(r, "", types[next++]));
      },
      text(), bound);
  return bound;
}

/// Traces the scan of `body(index, carried, slice) -> std::pair(carried, stacked)`.
template <fixed_text Loop, std::int64_t N, class Body, class Carry, class Xs>
constexpr auto run_scan(std::int64_t length, bool reversed, const Body& body, const Carry& init,
                        const Xs& xs) {
  using Slice = typename slices<Xs>::type;
  using Step = std::remove_cvref_t<decltype(body(tensor<std::int32_t>{}, init, Slice{}))>;
  if constexpr (!scan_step<Step>::value) {
    if constexpr (!Poison<Step>) report_static_error<not_a_pair_message<Step>>();
    return std::pair{leaves_from(nullptr, poisoned, init), invalid_tensor{}};
  } else if constexpr (!same_tree<body_sentence<Loop>, Carry, typename Step::first_type>() ||
                       Poison<typename Step::second_type>) {
    return std::pair{leaves_from(nullptr, poisoned, init), invalid_tensor{}};
  } else {
    using Y = typename Step::second_type;
    using Ys = typename stacked<N, Y>::type;
    builder* b = active_of(init, xs);
    if (b == nullptr) return std::pair<Carry, Ys>{init, Ys{}};
    vec<value_id> carried, sliced;
    capture_leaves(carried, *b, init);
    capture_leaves(sliced, *b, xs);
    builder& step = nested_program(*b, [&](builder& r) {
      const tensor<std::int32_t> index(&r, ops::parameter(r, "", tensor_type{dtype::i32, {}}));
      const Carry bound = bind_region(r, init);
      const Slice slice = bind_slices<Slice>(r, xs);
      const auto next = body(index, bound, slice);
      return_from(r, next.first);
      return_from(r, next.second);
    });
    capture_list captures;
    captures.add(step);
    captures.place(step, 1);
    b->close_region(step);
    const value_id first =
        ops::scan(*b, length, reversed, {captures.outer.data(), captures.outer.size()},
                  {carried.data(), carried.size()}, {sliced.data(), sliced.size()},
                  static_cast<program&&>(step.p));
    const auto count = static_cast<value_id>(carried.size());
    return std::pair<Carry, Ys>{leaves_from(b, first, init),
                                leaves_from(b, first < 0 ? first : first + count, Ys{})};
  }
}

}  // namespace dsl_detail

/// Options of scan.
struct scan_options {
  bool reversed =
      false;  ///< starts with the last slice; stacked results stay in the order of the slices
};

/// Loops over slices of `xs` with carried values. Returns the carried values after the last
/// iteration, and the stacked results of the body.
///
/// ```cpp
/// auto [h, squares] = scan([&](auto h, auto x) { return std::pair{h + x, x * x}; }, h0, xs);
/// ```
///
/// Shapes    carried: a tree; xs: a tensor (n, ...) or a std::tuple of such; the body maps (tree,
///           slices (...)) to std::pair(tree of the same type, tensor (...), tuple or `nothing{}`)
///           -> the tree, stacked (n, ...)
/// Cost      reverse mode keeps the carried values of each iteration and recomputes the rest of its
///           body
/// Errors    S182 the body changes the carried type, S184 extents of xs differ
/// Source    the semantics of jax.lax.scan
template <class Body, Tree Carry, class Xs>
constexpr auto scan(const Body& body, const Carry& init, const Xs& xs, scan_options options = {}) {
  constexpr auto indexed = [](const Body& f) {
    return [&f](const tensor<std::int32_t>&, const auto& c, const auto& x) { return f(c, x); };
  };
  const auto length = dsl_detail::leading(xs);
  using extent_type = std::remove_cvref_t<decltype(length)>;
  if constexpr (requires { std::integral_constant<std::int64_t, extent_type::value()>{}; })
    return dsl_detail::run_scan<"scan", extent_type::value()>(length.value(), options.reversed,
                                                              indexed(body), init, xs);
  else
    return dsl_detail::run_scan<"scan", dyn>(length.value(), options.reversed, indexed(body), init,
                                             xs);
}

/// Repeats carried = body(i, carried) for i = lower, ..., upper - 1, where i is an i32 scalar.
///
/// Errors    S182 the body changes the carried type, S183 upper is below lower, or a bound does not
///           fit i32
template <class Body, Tree Carry>
constexpr Carry for_loop(std::int64_t lower, std::int64_t upper, const Body& body,
                         const Carry& init) {
  builder* b = dsl_detail::active_of(init);
  if (b != nullptr && upper < lower)
    b->p.error.record("S183", "for_loop: from ", lower, " to ", upper, " is a negative trip count");
  const std::int64_t most = op::greatest_integer(dtype::i32);
  if (b != nullptr && (lower < -most || upper > most))
    b->p.error.record("S183", "for_loop: from ", lower, " to ", upper,
                      "; the index is an i32, between ", -most, " and ", most);
  const bool good = b == nullptr || !b->failed();
  return dsl_detail::run_scan<"for_loop", dyn>(
             good ? upper - lower : 0, false,
             [&](const auto& i, const auto& c, nothing) {
               if (lower == 0) return std::pair{body(i, c), nothing{}};
               return std::pair{body(i + lower, c), nothing{}};
             },
             init, nothing{})
      .first;
}

}  // namespace partita
