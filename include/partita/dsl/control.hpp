/// Loops, branches and calls. Bodies are functions of tensors (or trees of them) and may use
/// tensors of the model around them.
#pragma once

#include <partita/dsl/ops.hpp>
#include <partita/dsl/tree.hpp>
#include <tuple>
#include <utility>

namespace partita {

namespace detail {

/// Builds a nested program by `trace(builder)`.
template <class Trace>
constexpr builder& nested_program(builder& b, const Trace& trace) {
  builder& r = b.open_region();
  trace(r);
  b.leave_region(r);
  return r;
}
template <class T>
constexpr void take_leaves(vec<value_id>& out, builder& b, const T& tree) {
  for_each_leaf([&](const auto& leaf, std::string_view) { out.push_back(taken(b, leaf)); }, text(),
                tree);
}
/// A tree like `tree` whose leaves are consecutive values.
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
/// A tree like `tree` of new inputs of a nested program.
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
  take_leaves(values, r, tree);
  for (value_id v : values) r.p.outputs.push_back({v, {}});
}

/// What nested programs take from the program around them, each value once.
struct capture_list {
  vec<value_id> outer;

  constexpr void add(const builder& r) {
    for (const auto& c : r.captures()) {
      bool known = false;
      for (value_id v : outer) known = known || v == c.outer;
      if (!known) outer.push_back(c.outer);
    }
  }
  /// Gives a region all captures as inputs, in this order, from position `from` on.
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

template <class T>
concept Poison = std::is_same_v<std::remove_cvref_t<T>, invalid_tensor>;

/// What a tree is, for a message.
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
/// Where two types of trees differ first, and what they are there. (Of a tree that follows from a
/// mistake nothing more is said.)
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

/// The sentences about trees of the wrong type.
template <fixed_text Loop>
struct body_sentence {
  constexpr text operator()(const text& given, const text& wanted) const {
    return concat("S182 ", Loop.view(), ": the body gives ", given, "; the carried value is ",
                  wanted);
  }
};
struct condition_sentence {
  constexpr text operator()(const text& given, const text& wanted) const {
    return concat("S182 while_loop: the condition gives ", given, "; ", wanted, " is needed");
  }
};
template <std::size_t Branch>
struct branch_sentence {
  constexpr text operator()(const text& given, const text& wanted) const {
    return concat("S185 case: branch ", Branch, " gives ", given, "; branch 0 gives ", wanted);
  }
};
template <fixed_text Op, fixed_text What>
struct argument_sentence {
  constexpr text operator()(const text& given, const text& wanted) const {
    return concat("S186 ", Op.view(), ": the ", What.view(), " is ", given, "; ", wanted,
                  " is needed");
  }
};
/// "S182 while_loop: the body gives tensor<4x5xf32> as 1.0; the carried value is tensor<4x4xf32>"
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

/// Is `Given` the type of tree that is needed? Reports if not.
template <class Sentence, class Wanted, class Given>
constexpr bool same_tree() {
  if constexpr (!std::is_same_v<Given, Wanted>)
    report_static_error<tree_message<Sentence, Given, Wanted>>();
  return std::is_same_v<Given, Wanted>;
}

/// What scan's body gives: (carried, stacked).
template <class T>
struct scan_step : std::false_type {};
template <class C, class Y>
struct scan_step<std::pair<C, Y>> : std::true_type {};
template <class Step>
struct no_pair_message {
  constexpr text operator()() const {
    return "S182 scan: the body gives no std::pair of the carried value and what is stacked";
  }
};

}  // namespace detail

/// Repeats body(carried) while condition(carried) holds; both may use tensors around them.
///
/// Shapes    carried: a tree; condition: tree -> i1 scalar; body: tree -> tree of the same type
/// Errors    S182 the body changes the type, the condition gives no i1; no reverse mode (G002)
template <class Condition, class Body, Tree Carry>
constexpr Carry while_loop(const Condition& condition, const Body& body, const Carry& init) {
  using Next = std::remove_cvref_t<decltype(body(init))>;
  using Test = std::remove_cvref_t<decltype(condition(init))>;
  if constexpr (!detail::same_tree<detail::body_sentence<"while_loop">, Carry, Next>() ||
                !detail::same_tree<detail::condition_sentence, tensor<bool>, Test>()) {
    return detail::leaves_from(nullptr, poisoned, init);
  } else {
    builder* b = detail::active_of(init);
    if (b == nullptr) return init;
    vec<value_id> operands;
    detail::take_leaves(operands, *b, init);
    const std::size_t own = operands.size();
    builder* test = &detail::nested_program(
        *b, [&](builder& r) { detail::return_from(r, condition(detail::bind_region(r, init))); });
    builder* step = &detail::nested_program(
        *b, [&](builder& r) { detail::return_from(r, body(detail::bind_region(r, init))); });
    detail::capture_list captures;
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
    return detail::leaves_from(b,
                               ops::while_loop(*b, operands, static_cast<program&&>(test->p),
                                               static_cast<program&&>(step->p)),
                               init);
  }
}

/// No tensor: what a body without slices or stacked results takes or gives.
struct nothing {};
constexpr void for_each_leaf(const auto&, const text&, nothing&) {}
constexpr void for_each_leaf(const auto&, const text&, const nothing&) {}

namespace detail {

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
/// The type of N of them stacked.
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

/// The first extent of the first leaf, static if it is.
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

/// The scan of `body(index, carried, slice) -> std::pair(carried, stacked)`.
template <fixed_text Loop, std::int64_t N, class Body, class Carry, class Xs>
constexpr auto run_scan(std::int64_t length, bool reversed, const Body& body, const Carry& init,
                        const Xs& xs) {
  using Slice = typename slices<Xs>::type;
  using Step = std::remove_cvref_t<decltype(body(tensor<std::int32_t>{}, init, Slice{}))>;
  if constexpr (!scan_step<Step>::value) {
    if constexpr (!Poison<Step>) report_static_error<no_pair_message<Step>>();
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
    take_leaves(carried, *b, init);
    take_leaves(sliced, *b, xs);
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

}  // namespace detail

struct scan_options {
  bool reversed = false;  ///< the last slice first; stacked results stay in the order of the slices
};

/// Carries values through a loop over slices of `xs`; gives the last ones and what the body
/// stacked.
///
/// ```cpp
/// auto [h, squares] = scan([&](auto h, auto x) { return std::pair{h + x, x * x}; }, h0, xs);
/// ```
///
/// Shapes    carried: a tree; xs: a tensor (n, ...) or a std::tuple of such; the body takes (tree,
///           slices (...)) and gives std::pair(tree of the same type, tensor (...), tuple or
///           `nothing{}`) -> the tree, stacked (n, ...)
/// Errors    S182 the body changes the carried type, S184 extents of xs differ
/// Source    the semantics of jax.lax.scan. Reverse mode keeps the carried values of each iteration
///           and computes the rest of its body again.
template <class Body, Tree Carry, class Xs>
constexpr auto scan(const Body& body, const Carry& init, const Xs& xs, scan_options options = {}) {
  constexpr auto indexed = [](const Body& f) {
    return [&f](const tensor<std::int32_t>&, const auto& c, const auto& x) { return f(c, x); };
  };
  const auto length = detail::leading(xs);
  using extent_type = std::remove_cvref_t<decltype(length)>;
  if constexpr (requires { std::integral_constant<std::int64_t, extent_type::value()>{}; })
    return detail::run_scan<"scan", extent_type::value()>(length.value(), options.reversed,
                                                          indexed(body), init, xs);
  else
    return detail::run_scan<"scan", dyn>(length.value(), options.reversed, indexed(body), init, xs);
}

/// carried = body(i, carried) for i = lower, ..., upper - 1; i is an i32 scalar.
///
/// Errors    S182 the body changes the carried type, S183 upper is below lower, or a bound is no
///           i32
template <class Body, Tree Carry>
constexpr Carry for_loop(std::int64_t lower, std::int64_t upper, const Body& body,
                         const Carry& init) {
  builder* b = detail::active_of(init);
  if (b != nullptr && upper < lower)
    b->p.error.record("S183", "for_loop: from ", lower, " to ", upper, " is a negative trip count");
  const std::int64_t most = op::greatest_integer(dtype::i32);
  if (b != nullptr && (lower < -most || upper > most))
    b->p.error.record("S183", "for_loop: from ", lower, " to ", upper,
                      "; the index is an i32, between ", -most, " and ", most);
  const bool good = b == nullptr || !b->failed();
  return detail::run_scan<"for_loop", dyn>(
             good ? upper - lower : 0, false,
             [&](const auto& i, const auto& c, nothing) {
               if (lower == 0) return std::pair{body(i, c), nothing{}};
               return std::pair{body(i + lower, c), nothing{}};
             },
             init, nothing{})
      .first;
}

/// The branch with the number `index` (i32 scalar; out of range: the last), applied to the
/// arguments. Branches may use tensors around them and give trees of one type.
///
/// Errors    S185 branches disagree, S186 the index is no i32 scalar
template <Tensor Index, class... Branches, class... Args>
constexpr auto case_of(const Index& index, const std::tuple<Branches...>& branches,
                       const Args&... args) {
  using Result = std::remove_cvref_t<decltype(std::get<0>(branches)(args...))>;
  using results =
      std::tuple<std::remove_cvref_t<decltype(std::declval<const Branches&>()(args...))>...>;
  constexpr bool agree = []<std::size_t... I>(std::index_sequence<I...>) {
    return (
        detail::same_tree<detail::branch_sentence<I>, Result, std::tuple_element_t<I, results>>() &&
        ...);
  }
  (std::index_sequence_for<Branches...>{});
  if constexpr (!detail::same_tree<detail::argument_sentence<"case", "index">, tensor<std::int32_t>,
                                   Index>() ||
                !agree || detail::Poison<Result>) {
    return invalid_tensor{};
  } else {
    builder* b = detail::active_of(index, args...);
    builder* regions[sizeof...(Branches)] = {};
    vec<value_id> operands;
    Result like{};
    if (b == nullptr) return like;
    (detail::take_leaves(operands, *b, args), ...);
    const std::size_t own = operands.size();
    std::size_t r = 0;
    detail::capture_list captures;
    const auto trace_branch = [&](const auto& f) {
      builder& region = detail::nested_program(*b, [&](builder& nested) {
        const std::tuple<Args...> bound{detail::bind_region(nested, args)...};
        const Result result = std::apply(f, bound);
        if (r == 0) like = result;
        detail::return_from(nested, result);
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
    const value_id number = detail::taken(*b, index);
    return detail::leaves_from(
        b, ops::case_of(*b, number, operands, static_cast<vec<program>&&>(list)), like);
  }
}

/// if_true(args...) where the predicate (i1 scalar) holds, else if_false(args...).
///
/// Errors    S185 branches disagree (if_false is branch 0), S186 the predicate is something else
template <Tensor Predicate, class True, class False, class... Args>
constexpr auto cond(const Predicate& predicate, const True& if_true, const False& if_false,
                    const Args&... args) {
  if constexpr (!detail::same_tree<detail::argument_sentence<"cond", "predicate">, tensor<bool>,
                                   Predicate>())
    return invalid_tensor{};
  else
    return case_of(convert<std::int32_t>(predicate), std::tuple<False, True>{if_false, if_true},
                   args...);
}

/// f(args...) as a named computation: printed, and kept, as one op.
template <class F, class... Args>
constexpr auto call(std::string_view name, const F& f, const Args&... args) {
  using Result = std::remove_cvref_t<decltype(f(args...))>;
  if constexpr (detail::Poison<Result>) {
    return invalid_tensor{};
  } else {
    builder* b = detail::active_of(args...);
    if (b == nullptr) return Result{};
    vec<value_id> operands;
    (detail::take_leaves(operands, *b, args), ...);
    const std::size_t own = operands.size();
    Result result{};
    builder& region = detail::nested_program(*b, [&](builder& r) {
      const std::tuple<Args...> bound{detail::bind_region(r, args)...};
      result = std::apply(f, bound);
      detail::return_from(r, result);
    });
    detail::capture_list captures;
    captures.add(region);
    captures.place(region, own);
    operands.insert_back(captures.outer.begin(), captures.outer.end());
    b->close_region(region);
    return detail::leaves_from(b, ops::call(*b, name, operands, static_cast<program&&>(region.p)),
                               result);
  }
}

/// The same tree, whose values are passed on together: nothing is moved across.
template <Tree T>
constexpr T optimization_barrier(const T& tree) {
  builder* b = detail::active_of(tree);
  if (b == nullptr) return tree;
  vec<value_id> operands;
  detail::take_leaves(operands, *b, tree);
  return detail::leaves_from(b, ops::optimization_barrier(*b, operands), tree);
}

}  // namespace partita
