/// What the models of the paper share: tensors of run-time extents, the training step, and the
/// tactics that are the same for all of them.
///
/// Source    PartIR, arXiv:2401.11202, section 7 and appendix A
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include <partita/partita.hpp>

namespace paper {

namespace pt = partita;

using vector = pt::tensor<float, pt::dyn>;
using matrix = pt::tensor<float, pt::dyn, pt::dyn>;

/// A training step of `loss(params, batch...)` with Adam: inputs "params", "opt_state" and those of
/// the batch; outputs the next "params" and "opt_state", and "loss".
template <class Loss, pt::Tree Params, class... Batch>
constexpr pt::program trace_training_step(const Loss& loss, const Params& params,
                                          const pt::input_spec<Batch>&... batch) {
  const auto step = [&](const auto& p, const auto& state, const auto&... b) {
    const auto [value, gradients] =
        pt::value_and_grad([&](const auto& q) { return loss(q, b...); }, p);
    const auto [next_params, next_state] = pt::adam(pt::adam_options{}, p, gradients, state);
    return std::tuple{pt::output("params", next_params), pt::output("opt_state", next_state),
                      pt::output("loss", value)};
  };
  return pt::trace(step, pt::input("params", params),
                   pt::input("opt_state", pt::adam_state_for(params)), batch...);
}

}  // namespace paper
