/// A gated recurrent network: a loop over time.
///
/// Source    Cho et al. (GRU), arXiv:1406.1078
#pragma once

#include <cstdint>
#include <utility>

#include "step.hpp"

namespace small::recurrence {

constexpr std::int64_t steps = 6, rows = 8, width = 8, hidden = 16;

struct parameters {
  using in_matrix = pt::tensor<float, width, 3, hidden>;
  using recurrent_matrix = pt::tensor<float, hidden, 3, hidden>;
  using bias_vectors = pt::tensor<float, 3, hidden>;
  using out_matrix = pt::tensor<float, hidden, width>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (in_matrix, in), (recurrent_matrix, recurrent),
                           (bias_vectors, bias), (out_matrix, out));
};
/// Returns gate G of three: (rows, 3, hidden) -> (rows, hidden).
template <std::int64_t G>
constexpr auto gate = [](const auto& x) { return pt::squeeze<1>(pt::slice<1, G, G + 1>(x)); };

constexpr auto loss = [](const parameters& p, const auto& x, const auto& start, const auto& y) {
  const auto next = [&](const auto& h, const auto& in) {
    const auto from = pt::einsum<"bh,hgk->bgk">(h, p.recurrent);
    const auto update = pt::nn::sigmoid(gate<0>(in) + gate<0>(from));
    const auto reset = pt::nn::sigmoid(gate<1>(in) + gate<1>(from));
    const auto state = (1 - update) * tanh(gate<2>(in) + reset * gate<2>(from)) + update * h;
    return std::pair{state, state};
  };
  const auto [last, states] = pt::scan(next, start, pt::einsum<"tbd,dgh->tbgh">(x, p.in) + p.bias);
  return pt::nn::mean_squared_error(pt::einsum<"tbh,hd->tbd">(states, p.out), y);
};
constexpr auto with_batch = [](const auto& traced) {
  return traced(loss, pt::input<float, steps, rows, width>("x"),
                pt::input<float, rows, hidden>("start"), pt::input<float, steps, rows, width>("y"));
};
constexpr auto traced = [] {
  return with_batch([](const auto&... x) { return trace_step<parameters>(x...); });
};
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<parameters>(x...); });
};

constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 1}, {"start", 0}, {"y", 1}}, "BP");
constexpr auto MP = pt::manual("M", {{"params.in", 2}, {"params.recurrent", 2}}, "MP");

}  // namespace small::recurrence
