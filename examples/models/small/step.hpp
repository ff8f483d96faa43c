/// Shared parts of the small models: training steps, and gradients without an optimizer.
///
/// A model is a struct of parameters and a loss that takes the parameters and a batch. Its sizes
/// are as small as possible while it still has the collectives of the real model.
#pragma once

#include <tuple>

#include <partita/partita.hpp>

namespace small {

namespace pt = partita;

/// Traces a step of gradient descent: inputs "params" and those of the batch; outputs the next
/// "params", and "loss".
template <pt::Tree Params, class Loss, class... Batch>
constexpr pt::program trace_step(const Loss& loss, const pt::input_spec<Batch>&... batch) {
  return pt::trace(
      [&](const auto& p, const auto&... b) {
        const auto [value, g] = pt::value_and_grad([&](const auto& q) { return loss(q, b...); }, p);
        return std::tuple{pt::output("params", pt::sgd(0.1, p, g)), pt::output("loss", value)};
      },
      pt::input<Params>("params"), batch...);
}
/// Traces a step of Adam, with its state as the input and output "opt_state".
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
/// Traces gradients: inputs "params" and those of the batch; outputs "grad", a tree like "params",
/// and "loss".
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
