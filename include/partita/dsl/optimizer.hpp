/// Optimizers as functions of parameter trees.
#pragma once

#include <utility>

#include <partita/dsl/ops.hpp>
#include <partita/dsl/tree.hpp>

namespace partita {

/// Stochastic gradient descent: p - rate g.
template <Tree Params, class Rate>
constexpr Params sgd(const Rate& rate, const Params& params, const Params& gradients) {
  return map_leaves([&](const auto& p, const auto& g) { return p - g * rate; }, params, gradients);
}

namespace detail {
/// Natural logarithm of a number in (0, 2), usable in constant evaluation: 2 artanh((x-1)/(x+1)).
constexpr double natural_log(double x) {
  const double z = (x - 1) / (x + 1), square = z * z;
  double term = z, sum = 0;
  for (int k = 1; k < 400; k += 2, term *= square) sum += term / k;
  return 2 * sum;
}
}  // namespace detail

/// State of Adam: first and second moment, each like the parameters, and the number of steps done.
template <class Params>
struct adam_state {
  BOOST_HANA_DEFINE_STRUCT(adam_state, (Params, m), (Params, v), (tensor<float>, step));
};

/// The state (unbound) that belongs to parameters (unbound), for `input("opt_state", ...)`.
template <Tree Params>
constexpr adam_state<Params> adam_state_for(const Params& params) {
  return {params, params, {}};
}

struct adam_options {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

/// One step of Adam with bias correction; gives the new parameters and the new state.
///
/// Source    Kingma and Ba, arXiv:1412.6980, algorithm 1
template <Tree Params>
constexpr std::pair<Params, adam_state<Params>> adam(const adam_options& options,
                                                     const Params& params, const Params& gradients,
                                                     const adam_state<Params>& state) {
  adam_state<Params> next = state;
  next.step = state.step + 1;
  const auto beta_power = [&](double beta) { return exp(next.step * detail::natural_log(beta)); };
  const auto first = options.rate / (1 - beta_power(options.beta1));
  const auto second = 1 / (1 - beta_power(options.beta2));
  next.m = map_leaves(
      [&](const auto& m, const auto& g) { return m * options.beta1 + g * (1 - options.beta1); },
      state.m, gradients);
  next.v =
      map_leaves([&](const auto& v,
                     const auto& g) { return v * options.beta2 + (g * g) * (1 - options.beta2); },
                 state.v, gradients);
  const Params updated = map_leaves(
      [&](const auto& p, const auto& m, const auto& v) {
        using T = typename std::remove_cvref_t<decltype(p)>::element;
        return p - (m * convert<T>(first)) / (sqrt(v * convert<T>(second)) + options.epsilon);
      },
      params, next.m, next.v);
  return {updated, next};
}

}  // namespace partita
