/// Reverse-mode derivatives of traced programs.
#pragma once

#include <partita/support/vec.hpp>
#include <string_view>
#include <utility>

#include <partita/dsl/tree.hpp>
#include <partita/ir/order.hpp>

namespace partita {

namespace detail {

/// Cotangents of `wanted` values for a scalar value `of`, one derivative rule per op.
///
/// The ops it adds carry the op they come from as origin. A value that `of` does not depend on has
/// cotangent zero.
/// Errors    G001 not a scalar, G002 no derivative rule, G003 not floating point
constexpr vec<value_id> reverse(builder& b, value_id of, const vec<value_id>& wanted) {
  vec<value_id> result(wanted.size(), -1);
  if (b.failed()) return result;
  if (b.type(of).shape.rank != 0 || !is_floating(b.type(of).element)) {
    b.p.error.record("G001", "grad: the function returns ", b.type(of),
                     "; a floating-point scalar is needed");
    return result;
  }
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const int count = b.p.value_count();
  vec<char> depends(at(count), 0), wanted_operand;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const value_id v = wanted[i];
    if (v == poisoned) {
      b.p.error.record("P000", "grad: the parameters did not compile");
      return result;
    }
    if (v < 0 || !is_floating(b.type(v).element)) {
      text which;
      if (v >= 0 && !b.p.name(v).empty())
        which << '"' << b.p.name(v) << '"';
      else
        which << i;
      b.p.error.record("G003", "grad: parameter ", which, " has type ", b.type(v),
                       "; only floating-point values have gradients");
      return result;
    }
    depends[at(v)] = 1;
  }
  const value_id roots[] = {of};
  const vec<op_id> order = canonical_order(b.p, roots);
  for (op_id o : order)
    for (value_id v : b.p.operands(o))
      if (depends[at(v)]) depends[at(b.p.op(o).result)] = 1;

  vec<value_id> cotangent(at(count), -1), operands;
  cotangent[at(of)] = ops::scalar(b, b.type(of).element, 1);
  for (std::size_t k = order.size(); k > 0 && !b.failed(); --k) {
    const op_id o = order[k - 1];
    const value_id y = b.p.op(o).result;
    const int n = b.p.op(o).operand_count;
    if (cotangent[at(y)] < 0 || !depends[at(y)] || n == 0) continue;
    bool stop = true;
    wanted_operand.assign(at(n), 0);
    for (int i = 0; i < n; ++i)
      if (depends[at(b.p.operand(o, i))]) wanted_operand[at(i)] = 1, stop = false;
    if (stop) continue;
    const op_def& d = *b.p.op(o).def;
    if (!d.differentiable) {
      b.p.error.record("G002", "grad: op ", d.name, " (", b.type(y), ") has no derivative rule");
      break;
    }
    operands.assign(at(n), -1);
    b.set_origin(o, b.p.op(o).transposed + 1);
    derive_context c{b, o, cotangent[at(y)], operands, wanted_operand};
    d.derive(c);
    for (int i = 0; i < n; ++i) {
      const value_id x = b.p.operand(o, i);
      if (operands[at(i)] < 0 || !wanted_operand[at(i)]) continue;
      value_id& sum = cotangent[at(x)];
      sum = sum < 0 ? operands[at(i)] : ops::add(b, sum, operands[at(i)]);
    }
  }
  b.set_origin(-1, 0);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    result[i] = cotangent[at(wanted[i])];
    if (result[i] < 0) result[i] = ops::constant(b, b.type(wanted[i]), 0);
  }
  return result;
}

}  // namespace detail

/// `auto [loss, gradients] = value_and_grad(f, params)`: f(params), a floating-point scalar, and
/// its gradient, a tree like params. `f` may use other values of the trace.
///
/// Errors    G001 not a scalar, G002 no derivative rule for an op, G003 parameter not floating
/// point
template <class F, Tree Params>
constexpr auto value_and_grad(const F& f, const Params& params) {
  const auto loss = f(params);
  using Loss = std::remove_cvref_t<decltype(loss)>;
  Params gradients = params;
  if constexpr (!Loss::is_valid) {
    for_each_leaf([&](auto& leaf, std::string_view) { leaf = loss; }, text(), gradients);
  } else if (loss.context() != nullptr) {
    vec<value_id> wanted;
    builder* b = loss.context();
    for_each_leaf([&](const auto& leaf, std::string_view) { wanted.push_back(leaf.id()); }, text(),
                  params);
    const vec<value_id> found = detail::reverse(*b, loss.id(), wanted);
    std::size_t next = 0;
    for_each_leaf(
        [&](auto& leaf, std::string_view) {
          leaf = std::remove_cvref_t<decltype(leaf)>(b, found[next++]);
        },
        text(), gradients);
  }
  return std::pair<Loss, Params>{loss, gradients};
}

/// The gradient alone.
template <class F, Tree Params>
constexpr Params grad(const F& f, const Params& params) {
  return value_and_grad(f, params).second;
}

}  // namespace partita
