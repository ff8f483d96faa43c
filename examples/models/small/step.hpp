/// What the small models share: steps of training, and gradients alone.
///
/// A model is a struct of parameters and a loss of them and a batch; its sizes are as small as
/// they can be without losing what it communicates.
#pragma once

#include <tuple>

#include <partita/partita.hpp>

namespace small {

namespace pt = partita;

/// A step of gradient descent: inputs "params" and those of the batch; outputs the next "params",
/// and "loss".
template <pt::Tree Params, class Loss, class... Batch>
constexpr pt::program trace_step(const Loss& loss, const pt::input_spec<Batch>&... batch) {
  return pt::trace(
      [&](const auto& p, const auto&... b) {
        const auto [value, g] = pt::value_and_grad([&](const auto& q) { return loss(q, b...); }, p);
        return std::tuple{pt::output("params", pt::sgd(0.1, p, g)), pt::output("loss", value)};
      },
      pt::input<Params>("params"), batch...);
}
/// A step of Adam, with its state as input and output "opt_state".
template <pt::Tree Params, class Loss, class... Batch>
constexpr pt::program trace_adam_step(const Loss& loss, const pt::input_spec<Batch>&... batch) {
  return pt::trace(
      [&](const auto& p, const auto& state, const auto&... b) {
        const auto [value, g] = pt::value_and_grad([&](const auto& q) { return loss(q, b...); }, p);
        const auto [next, next_state] = pt::adam({}, p, g, state);
        return std::tuple{pt::output("params", next), pt::output("opt_state", next_state),
                          pt::output("loss", value)};
      },
      pt::input<Params>("params"), pt::input("opt_state", pt::adam_state_for(Params{})), batch...);
}
/// Gradients: inputs "params" and those of the batch; outputs "grad", a tree as "params", and
/// "loss".
template <pt::Tree Params, class Loss, class... Batch>
constexpr pt::program trace_gradients(const Loss& loss, const pt::input_spec<Batch>&... batch) {
  return pt::trace(
      [&](const auto& p, const auto&... b) {
        const auto [value, g] = pt::value_and_grad([&](const auto& q) { return loss(q, b...); }, p);
        return std::tuple{pt::output("grad", g), pt::output("loss", value)};
      },
      pt::input<Params>("params"), batch...);
}

}  // namespace small
