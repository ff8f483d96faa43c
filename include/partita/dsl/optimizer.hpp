/// Optimizers as functions of parameter trees.
#pragma once

#include <bit>
#include <utility>

#include <partita/dsl/ops.hpp>
#include <partita/dsl/tree.hpp>
#include <partita/support/number_text.hpp>

namespace partita {

namespace dsl_detail {
/// Converts a learning rate for a parameter: a number stays a number, a scalar gets the parameter's
/// element type.
template <Tensor P, class Rate>
constexpr auto rate_for(const P&, const Rate& rate) {
  if constexpr (Number<Rate>)
    return rate;
  else
    return convert<typename P::element>(rate);
}
}  // namespace dsl_detail

/// Returns the parameters after a step of stochastic gradient descent: p - rate g. The rate is a
/// number or an f32 scalar.
template <Tree Params, class Rate>
constexpr Params sgd(const Rate& rate, const Params& params, const Params& gradients) {
  return map_leaves(
      [&](const auto& p, const auto& g) { return p - g * dsl_detail::rate_for(p, rate); }, params,
      gradients);
}

/// State of SGD with momentum: a velocity with the structure of the parameters.
template <class Params>
struct momentum_state {
  BOOST_HANA_DEFINE_STRUCT(momentum_state, (Params, velocity));
};
/// Returns the state (unbound) that belongs to parameters (unbound); its values start at zero.
template <Tree Params>
constexpr momentum_state<Params> momentum_state_for(const Params& params) {
  return {params};
}
/// Options of SGD with momentum.
struct momentum_options {
  double momentum = 0.9;
  bool nesterov = false;
};
/// Takes a step of SGD with momentum, v = momentum v + g. Returns the new parameters, p - rate v,
/// or p - rate (g + momentum v) with nesterov, and the new state.
///
/// Source    Sutskever et al., "On the importance of initialization and momentum in deep learning",
///           as PyTorch's torch.optim.SGD writes it
template <Tree Params, class Rate>
constexpr std::pair<Params, momentum_state<Params>> sgd(const Rate& rate,
                                                        const momentum_options& options,
                                                        const Params& params,
                                                        const Params& gradients,
                                                        const momentum_state<Params>& state) {
  momentum_state<Params> next = state;
  next.velocity = map_leaves([&](const auto& v, const auto& g) { return v * options.momentum + g; },
                             state.velocity, gradients);
  const Params updated = map_leaves(
      [&](const auto& p, const auto& g, const auto& v) {
        const auto rate_here = dsl_detail::rate_for(p, rate);
        if (options.nesterov) return p - (g + v * options.momentum) * rate_here;
        return p - v * rate_here;
      },
      params, gradients, next.velocity);
  return {updated, next};
}

namespace dsl_detail {
/// Returns the natural logarithm of a number in [0, 2), in constant evaluation too. It uses 2
/// artanh((x-1)/(x+1)), whose series converges fast once x is above 1/2.
constexpr double natural_log(double x) {
  if (!(x > 0)) return -std::bit_cast<double>(support_detail::infinity);
  int halvings = 0;
  for (; x < 0.5; x *= 2) ++halvings;
  const double z = (x - 1) / (x + 1), square = z * z;
  double term = z, sum = 0;
  for (int k = 1; k < 400; k += 2, term *= square) sum += term / k;
  return 2 * sum - halvings * 0.6931471805599453;
}
}  // namespace dsl_detail

/// State of Adam: the first and second moment, each with the structure of the parameters, and the
/// number of completed steps.
template <class Params>
struct adam_state {
  BOOST_HANA_DEFINE_STRUCT(adam_state, (Params, m), (Params, v), (tensor<float>, step));
};

/// Returns the state (unbound) that belongs to parameters (unbound), for `input("opt_state", ...)`.
template <Tree Params>
constexpr adam_state<Params> adam_state_for(const Params& params) {
  return {params, params, {}};
}

/// Options of adam and adamw.
struct adam_options {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;  ///< decoupled from the gradient, as in AdamW
};

/// Takes a step of Adam with bias correction, or of AdamW if options.weight_decay is not 0. Returns
/// the new parameters and the new state. `rate`, an f32 scalar such as the value of a schedule,
/// replaces options.rate.
///
/// Source    Kingma and Ba, arXiv:1412.6980, algorithm 1; Loshchilov and Hutter, arXiv:1711.05101,
///           algorithm 2 (the decay times the rate)
template <Tree Params, class Rate>
constexpr std::pair<Params, adam_state<Params>> adam(const adam_options& options,
                                                     const Params& params, const Params& gradients,
                                                     const adam_state<Params>& state,
                                                     const Rate& rate) {
  adam_state<Params> next = state;
  next.step = state.step + 1;
  // 1 - beta^step, accurate also if beta^step is almost 1
  const auto correction = [&](double beta) {
    return -expm1(next.step * dsl_detail::natural_log(beta));
  };
  const auto first = rate / correction(options.beta1);
  const auto second = 1 / correction(options.beta2);
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
        const auto moved =
            p - (m * convert<T>(first)) / (sqrt(v * convert<T>(second)) + options.epsilon);
        if (options.weight_decay == 0) return moved;
        return moved - p * (dsl_detail::rate_for(p, rate) * options.weight_decay);
      },
      params, next.m, next.v);
  return {updated, next};
}
/// Takes a step of Adam with the rate options.rate.
template <Tree Params>
constexpr std::pair<Params, adam_state<Params>> adam(const adam_options& options,
                                                     const Params& params, const Params& gradients,
                                                     const adam_state<Params>& state) {
  return adam(options, params, gradients, state, options.rate);
}
/// Takes a step of Adam with decoupled weight decay (equal to adam with options.weight_decay).
template <Tree Params, class Rate>
constexpr std::pair<Params, adam_state<Params>> adamw(double weight_decay, adam_options options,
                                                      const Params& params, const Params& gradients,
                                                      const adam_state<Params>& state,
                                                      const Rate& rate) {
  options.weight_decay = weight_decay;
  return adam(options, params, gradients, state, rate);
}
/// Takes a step of AdamW with the rate options.rate.
template <Tree Params>
constexpr std::pair<Params, adam_state<Params>> adamw(double weight_decay,
                                                      const adam_options& options,
                                                      const Params& params, const Params& gradients,
                                                      const adam_state<Params>& state) {
  return adamw(weight_decay, options, params, gradients, state, options.rate);
}

/// Returns the square root of the sum of the squares of all elements of a tree, as an f32 scalar.
template <Tree Params>
constexpr tensor<float> global_norm(const Params& tree) {
  tensor<float> total;
  bool first = true;
  for_each_leaf(
      [&](const auto& leaf, std::string_view) {
        const auto wide = convert<float>(leaf);
        const tensor<float> squares = sum(wide * wide);
        total = first ? squares : total + squares;
        first = false;
      },
      text(), tree);
  return sqrt(total);
}
/// Scales a tree down so that its global norm is at most `most`. Returns the scaled tree and the
/// original norm.
///
/// Source    Pascanu et al., arXiv:1211.5063
template <Tree Params>
constexpr std::pair<Params, tensor<float>> clip_by_global_norm(const Params& gradients,
                                                               double most) {
  const tensor<float> norm = global_norm(gradients);
  const tensor<float> scale = most / maximum(norm, most);
  return {map_leaves([&](const auto& g) { return g * dsl_detail::rate_for(g, scale); }, gradients),
          norm};
}

/// Learning rates as functions of the step (an f32 scalar, 0 at the first step) that return f32
/// scalars.
namespace rates {

/// Rises linearly from 0 to `peak` in `warmup` steps and stays there.
template <Tensor Step>
constexpr auto linear_warmup(const Step& step, double peak, double warmup) {
  if (!(warmup > 0)) return full_like(step, peak);
  return minimum(step * (peak / warmup), peak);
}
/// Falls from `peak` to `least` in `steps` steps along half a cosine and stays there.
///
/// Source    Loshchilov and Hutter, arXiv:1608.03983, without restarts
template <Tensor Step>
constexpr auto cosine_decay(const Step& step, double peak, double steps, double least = 0) {
  constexpr double pi = 3.141592653589793;
  const auto done = minimum(step * (1 / steps), 1.0);
  return (cos(done * pi) + 1) * ((peak - least) / 2) + least;
}
/// Rises in `warmup` steps, then falls along half a cosine until step `steps`.
template <Tensor Step>
constexpr auto warmup_cosine(const Step& step, double peak, double warmup, double steps,
                             double least = 0) {
  return select(step < warmup, linear_warmup(step, peak, warmup),
                cosine_decay(maximum(step - warmup, 0), peak, steps - warmup, least));
}
/// Returns peak * factor^(step / every).
template <Tensor Step>
constexpr auto exponential_decay(const Step& step, double peak, double factor, double every) {
  return exp(log(full_like(step, factor)) * (step * (1 / every))) * peak;
}
/// Rises in `warmup` steps, then falls with the inverse square root of the step.
///
/// Source    Vaswani et al., arXiv:1706.03762, section 5.3
template <Tensor Step>
constexpr auto inverse_square_root(const Step& step, double peak, double warmup) {
  return minimum(step * (peak / warmup), rsqrt(maximum(step, 1.0) * (1 / warmup)) * peak);
}

}  // namespace rates

}  // namespace partita
