/// A state-space model: a linear recurrence per channel whose decay and input depend on the data.
///
/// Source    Gu and Dao (Mamba), arXiv:2312.00752
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include "step.hpp"

namespace small::state_space {

constexpr std::int64_t steps = 6, rows = 4, width = 8, inner = 16, states = 4, rank = 2;

struct parameters {
  using in_matrix = pt::tensor<float, width, inner>;
  using low_matrix = pt::tensor<float, inner, rank>;
  using rate_matrix = pt::tensor<float, rank, inner>;
  using state_matrix = pt::tensor<float, inner, states>;
  using out_matrix = pt::tensor<float, inner, width>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (in_matrix, in), (in_matrix, gate), (low_matrix, low),
                           (rate_matrix, rate), (state_matrix, decay), (state_matrix, read),
                           (state_matrix, write), (out_matrix, out));
};

/// Returns log(1 + exp(x)).
constexpr auto softplus = [](const auto& x) { return log1p(exp(x)); };

/// x (steps, rows, width) -> the same. Each channel has `states` decaying state variables.
constexpr auto layer = [](const parameters& p, const auto& x) {
  const auto u = pt::nn::silu(matmul(x, p.in));  // (t, r, i)
  const auto rate = softplus(matmul(matmul(u, p.low), p.rate));
  const auto write = pt::einsum<"tri,in->trn">(u, p.write);
  const auto read = pt::einsum<"tri,in->trn">(u, p.read);
  const auto next = [&](const auto& h, const auto& now) {
    const auto& [u, rate, write, read] = now;  // (r, i), (r, i), (r, n), (r, n)
    const auto kept = exp(-pt::expand_dims<2>(rate) * exp(p.decay));
    const auto state = kept * h + pt::einsum<"ri,rn->rin">(rate * u, write);
    return std::pair{state, pt::einsum<"rin,rn->ri">(state, read)};
  };
  const auto start = pt::full_like(pt::einsum<"ri,in->rin">(pt::sum<0>(u), p.decay), 0.f);
  const auto [last, y] = pt::scan(next, start, std::tuple{u, rate, write, read});
  return matmul(y * pt::nn::silu(matmul(x, p.gate)), p.out);
};
constexpr auto loss = [](const parameters& p, const auto& x, const auto& y) {
  return pt::nn::mean_squared_error(x + layer(p, x), y);
};
constexpr auto with_batch = [](const auto& traced) {
  return traced(loss, pt::input<float, steps, rows, width>("x"),
                pt::input<float, steps, rows, width>("y"));
};
constexpr auto traced = [] {
  return with_batch([](const auto&... x) { return trace_step<parameters>(x...); });
};
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<parameters>(x...); });
};

constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 1}, {"y", 1}}, "BP");
/// Shards the channels. The rates and the states' inputs and outputs are sums over all channels.
constexpr auto MP = pt::manual(
    "M", {{"params.in", 1}, {"params.gate", 1}, {"params.rate", 1}, {"params.decay", 0}}, "MP");

}  // namespace small::state_space
