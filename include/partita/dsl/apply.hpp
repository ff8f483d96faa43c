/// Applies an op to typed tensors. Static types are checked while compiling, the rest while
/// tracing.
///
/// `apply_op` applies user-defined ops; see examples/custom_op.cpp.
#pragma once

#include <tuple>

#include <partita/dsl/tensor.hpp>
#include <partita/support/separate.hpp>

namespace partita::dsl_detail {

/// Result of a shape rule for static types.
struct static_result {
  tensor_type type;
  text message;
};

/// Runs an emitter on a scratch builder whose parameters have the static types. This is the
/// run-time code, so the shape rule and the message are the same.
template <class Emit, shape Extra, class... Xs>
constexpr static_result run_static() {
  builder b;
  b.allow_dynamic_extents();
  const value_id ids[sizeof...(Xs) + 1] = {ops::parameter(b, "", Xs::static_type)..., -1};
  const value_id r = Emit{}(b, ids, Extra);
  return {b.type(r), b.p.error.message};
}

template <class Emit, shape Extra, class... Xs>
struct static_message {
  constexpr text operator()() const { return run_static<Emit, Extra, Xs...>().message; }
};

/// The result type, or a type of rank above max_rank if the operands do not fit the op.
template <class Emit, shape Extra, class... Xs>
inline constexpr tensor_type static_type_of = [] {
  const static_result r = run_static<Emit, Extra, Xs...>();
  tensor_type t = r.type;
  if (!r.message.empty()) t.shape.rank = max_rank + 1;
  return t;
}();

/// Returns the innermost of the traces that some tensors belong to, or null.
template <class... Xs>
constexpr builder* innermost(const Xs&... xs) {
  builder* b = nullptr;
  const auto look = [&](builder* c) {
    if (c != nullptr && (b == nullptr || c->within(b))) b = c;
  };
  (look(xs.context()), ...);
  return b;
}

/// Returns the value of a tensor in trace `b`. A tensor of an enclosing trace is captured.
///
/// Errors    P006 the tensor is from another trace, from none, or from a nested one that is
///           finished
constexpr value_id captured_from(builder& b, const builder* from, value_id v) {
  if (v == poisoned) return poisoned;
  if (b.closed() || (from != nullptr && from->closed())) {
    // Record the error in the next enclosing trace that is still open, too.
    for (builder* each = &b; each != nullptr; each = each->closed() ? each->parent() : nullptr)
      each->p.error.record("P006", "trace: an op uses a tensor of a body that is finished; only ",
                           "the results of the body can be used outside of it");
    return -1;
  }
  if (from == &b) return v;
  if (from == nullptr || !b.within(from)) {
    b.p.error.record("P006", "trace: an op uses a tensor that is not of this trace");
    return -1;
  }
  return b.take(from, def<op::parameter>, v);
}

}  // namespace partita::dsl_detail

namespace partita::separate {
value_id captured_from(builder& b, const builder* from, value_id v);
}

namespace partita::dsl_detail {

template <class X>
constexpr value_id captured(builder& b, const X& x) {
  PARTITA_RETURN(captured_from(b, x.context(), x.id()),
                 separate::captured_from(b, x.context(), x.id()));
}

/// Applies an emitter to tensors. `Emit` is a captureless callable (builder, operand ids, extents).
/// `Static` has the statically known extents, `actual` all extents.
template <shape Static, class Emit, class... Xs>
constexpr auto apply_with(const Emit& emit, const shape& actual, const Xs&... xs) {
  if constexpr (!(Xs::is_valid && ...)) {
    return invalid_tensor{};
  } else {
    constexpr tensor_type type = static_type_of<Emit, Static, Xs...>;
    if constexpr (type.shape.rank > max_rank) {
      report_static_error<static_message<Emit, Static, Xs...>>();
      return invalid_tensor{};
    } else {
      using result = tensor_of<type>;
      builder* b = innermost(xs...);
      if (((xs.id() == poisoned) || ...)) return result(nullptr, poisoned);
      if (b == nullptr) return result(nullptr, -1);
      const value_id ids[sizeof...(Xs) + 1] = {captured(*b, xs)..., -1};
      return result(b, emit(*b, ids, actual));
    }
  }
}

template <class Emit, class... Xs>
constexpr auto apply(const Emit& emit, const Xs&... xs) {
  return apply_with<shape{}>(emit, shape{}, xs...);
}

/// Runs the shape rule on static types and returns the type of result number I.
template <std::size_t I, class Emit, class... Xs>
constexpr static_result run_static_result() {
  builder b;
  b.allow_dynamic_extents();
  const value_id ids[sizeof...(Xs) + 1] = {ops::parameter(b, "", Xs::static_type)..., -1};
  const value_id first = Emit{}(b, ids, shape{});
  return {b.type(first < 0 ? first : first + static_cast<value_id>(I)), b.p.error.message};
}
template <std::size_t I, class Emit, class... Xs>
struct typed_result {
  static constexpr tensor_type type = run_static_result<I, Emit, Xs...>().type;
  using tensor = tensor_of<type>;
};

/// Applies an emitter of an op with N results. Returns a std::tuple of tensors.
template <std::size_t N, class Emit, class... Xs>
constexpr auto apply_results(const Emit& emit, const Xs&... xs) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    if constexpr (!(Xs::is_valid && ...)) {
      return std::tuple{((void)I, invalid_tensor{})...};
    } else if constexpr (static_type_of<Emit, shape{}, Xs...>.shape.rank > max_rank) {
      report_static_error<static_message<Emit, shape{}, Xs...>>();
      return std::tuple{((void)I, invalid_tensor{})...};
    } else {
      using results = std::tuple<typename typed_result<I, Emit, Xs...>::tensor...>;
      builder* b = innermost(xs...);
      value_id first = -1;
      if (((xs.id() == poisoned) || ...)) {
        first = poisoned;
      } else if (b != nullptr) {
        const value_id ids[sizeof...(Xs) + 1] = {captured(*b, xs)..., -1};
        first = emit(*b, ids, shape{});
      }
      return results{std::tuple_element_t<I, results>(
          b, first < 0 ? first : first + static_cast<value_id>(I))...};
    }
  }
  (std::make_index_sequence<N>{});
}

/// The extents of a pack as a static shape. Run-time integers and `extent<dyn>` are dynamic.
template <class... E>
inline constexpr shape static_extents{[] {
  if constexpr (requires { std::integral_constant<std::int64_t, E::value()>{}; })
    return E::value();
  else
    return dyn;
}()...};

template <class E>
constexpr std::int64_t extent_value(const E& e) {
  if constexpr (std::integral<E>)
    return static_cast<std::int64_t>(e);
  else
    return e.value();
}
template <class... E>
constexpr shape actual_extents(const E&... e) {
  return shape{extent_value(e)...};
}

}  // namespace partita::dsl_detail

namespace partita {

namespace dsl_detail {
template <class Op, std::size_t N, std::int64_t... Attributes>
struct op_emitter {
  constexpr value_id operator()(builder& b, const value_id* v, const shape&) const {
    const std::int64_t attrs[] = {Attributes..., 0};
    return b.emit(def<Op>, {v, N}, {attrs, sizeof...(Attributes)});
  }
};
/// Returns the number of results of an op for operands of static types, or 1 if they do not fit.
template <class Emit, class... Xs>
constexpr std::size_t result_count() {
  builder b;
  b.allow_dynamic_extents();
  const value_id ids[sizeof...(Xs) + 1] = {ops::parameter(b, "", Xs::static_type)..., -1};
  const value_id first = Emit{}(b, ids, shape{});
  return first < 0 ? 1 : static_cast<std::size_t>(b.p.op(b.p.producer(first)).result_count);
}
}  // namespace dsl_detail

/// Applies an op, user-defined or from op/, with these attributes: `apply_op<rope, 1>(x, at)`.
/// Returns a tensor, or a std::tuple of tensors if the op has several results.
///
/// Errors    those of the op's shape rule, reported while compiling if the types are static
template <class Op, std::int64_t... Attributes, Tensor X, Tensor... Xs>
constexpr auto apply_op(const X& x, const Xs&... xs) {
  using emit = dsl_detail::op_emitter<Op, 1 + sizeof...(Xs), Attributes...>;
  constexpr std::size_t count = dsl_detail::result_count<emit, X, Xs...>();
  if constexpr (count == 1)
    return dsl_detail::apply(emit{}, x, xs...);
  else
    return dsl_detail::apply_results<count>(emit{}, x, xs...);
}

}  // namespace partita
