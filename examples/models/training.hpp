/// Shared parts of the paper's models: tensors with run-time extents, layers, the training step.
///
/// A model takes its sizes from a struct at run time. The same code is small in a test, and has the
/// paper's size where it is only traced.
///
/// Source    PartIR, arXiv:2401.11202, section 7 and appendix A
#pragma once

#include <cstdint>
#include <tuple>

#include <partita/partita.hpp>

namespace paper {

namespace pt = partita;

using vector = pt::tensor<float, pt::dyn>;
using matrix = pt::tensor<float, pt::dyn, pt::dyn>;

struct norm_params {
  BOOST_HANA_DEFINE_STRUCT(norm_params, (vector, scale), (vector, bias));
};
inline norm_params norm_params_of(std::int64_t width) {
  return {.scale = vector(width), .bias = vector(width)};
}

struct linear_params {
  BOOST_HANA_DEFINE_STRUCT(linear_params, (matrix, weights), (vector, bias));
};
inline linear_params linear_params_of(std::int64_t in, std::int64_t out) {
  return {.weights = matrix(in, out), .bias = vector(out)};
}
constexpr auto linear = [](const linear_params& p, const auto& x) {
  return pt::nn::linear(x, p.weights, p.bias);
};

/// Traces a training step of `loss(params, batch...)` with Adam. Its inputs are "params",
/// "opt_state" and those of the batch; its outputs are the next "params" and "opt_state", and
/// "loss".
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
