/// Reverse-mode derivatives of traced programs.
#pragma once

#include <string_view>
#include <utility>

#include <partita/dsl/apply.hpp>
#include <partita/dsl/tree.hpp>
#include <partita/op/reverse_mode.hpp>
#include <partita/support/separate.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace dsl_detail {

/// Emits the gradients of a scalar value `of` with respect to `wanted` values.
///
/// Errors    G001 not a scalar, G002 no derivative rule, G003 not floating point
constexpr vec<value_id> gradients(builder& b, value_id of, const vec<value_id>& wanted) {
  const vec<value_id> none(wanted.size(), -1);
  if (b.failed()) return none;
  if (b.type(of).shape.rank != 0 || !is_floating(b.type(of).element)) {
    b.p.error.record("G001", "grad: the function returns ", b.type(of),
                     "; a floating-point scalar is needed");
    return none;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const value_id v = wanted[i];
    if (v == poisoned) {
      b.p.error.record("P000", "grad: the parameters did not compile");
      return none;
    }
    if (v < 0 || !is_floating(b.type(v).element)) {
      text which;
      if (v >= 0 && !b.p.name(v).empty())
        which << '"' << b.p.name(v) << '"';
      else
        which << i;
      b.p.error.record("G003", "grad: parameter ", which, " has type ", b.type(v),
                       "; only floating-point values have gradients");
      return none;
    }
  }
  const value_id one = ops::scalar(b, b.type(of).element, 1);
  return reverse(b, vec<op_detail::seed>{{of, one}}, wanted);
}

}  // namespace dsl_detail

namespace separate {
vec<value_id> gradients(builder& b, value_id of, const vec<value_id>& wanted);
}

namespace dsl_detail {
constexpr vec<value_id> reverse(builder& b, value_id of, const vec<value_id>& wanted) {
  PARTITA_RETURN(gradients(b, of, wanted), separate::gradients(b, of, wanted));
}
}  // namespace dsl_detail

/// Returns f(params), a floating-point scalar, and its gradient, a tree like params: `auto [loss,
/// gradients] = value_and_grad(f, params)`. `f` may use other values of the trace.
///
/// Errors    G001 not a scalar, G002 no derivative rule for an op, G003 parameter not floating
///           point
template <class F, Tree Params>
constexpr auto value_and_grad(const F& f, const Params& params) {
  builder* b = dsl_detail::active_of(params);
  Params bound = params, gradients = params;
  vec<value_id> wanted;
  if (b != nullptr)  // in a nested program, capture the parameters first, so that what depends on
                     // them is in it
    for_each_leaf(
        [&](auto& leaf, std::string_view) {
          wanted.push_back(dsl_detail::captured(*b, leaf));
          leaf = std::remove_cvref_t<decltype(leaf)>(b, wanted.back());
        },
        text(), bound);
  const auto loss = f(bound);
  using Loss = std::remove_cvref_t<decltype(loss)>;
  if constexpr (!Loss::is_valid) {
    for_each_leaf([&](auto& leaf, std::string_view) { leaf = loss; }, text(), gradients);
  } else if (b != nullptr) {
    const vec<value_id> found = dsl_detail::reverse(*b, dsl_detail::captured(*b, loss), wanted);
    std::size_t next = 0;
    for_each_leaf(
        [&](auto& leaf, std::string_view) {
          leaf = std::remove_cvref_t<decltype(leaf)>(b, found[next++]);
        },
        text(), gradients);
  }
  return std::pair<Loss, Params>{loss, gradients};
}

/// Returns the gradient of f, without its value (see value_and_grad).
template <class F, Tree Params>
constexpr Params grad(const F& f, const Params& params) {
  return value_and_grad(f, params).second;
}

}  // namespace partita
