/// A diffusion transformer that predicts noise. The time of the diffusion determines the scale and
/// shift of its norms.
///
/// Source    Peebles and Xie (DiT), arXiv:2212.09748; Ho et al., arXiv:2006.11239
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "step.hpp"

namespace small::diffusion {

constexpr std::int64_t depth = 2, batch = 8, tokens = 6, channels = 4, width = 16, heads = 4,
                       key = 4, hidden = 32, frequencies = 4, parts = 6;

struct layer {
  using condition_matrix = pt::tensor<float, width, parts, width>;
  using in_matrix = pt::tensor<float, width, heads, key>;
  using out_matrix = pt::tensor<float, heads, key, width>;
  using up_matrix = pt::tensor<float, width, hidden>;
  using down_matrix = pt::tensor<float, hidden, width>;
  BOOST_HANA_DEFINE_STRUCT(layer, (condition_matrix, condition), (in_matrix, query),
                           (in_matrix, key_in), (in_matrix, value), (out_matrix, out),
                           (up_matrix, up), (down_matrix, down));
};
struct parameters {
  using in_matrix = pt::tensor<float, channels, width>;
  using out_matrix = pt::tensor<float, width, channels>;
  using time_matrix = pt::tensor<float, 2 * frequencies, width>;
  using all_layers = std::array<layer, depth>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (in_matrix, in), (time_matrix, time), (all_layers, layers),
                           (out_matrix, out));
};

/// Returns sines and cosines: (batch) -> (batch, 2 frequencies).
constexpr auto waves = [](const auto& t) {
  const auto i = pt::convert<float>(
      pt::iota<std::int32_t, 1>(t, pt::extent<batch>{}, pt::extent<frequencies>{}));
  const auto angle = pt::expand_dims<1>(t) * exp(i * -1.5);
  return pt::concatenate<1>(sin(angle), cos(angle));
};
/// Returns one of the six vectors of each example: (batch, 6, width) -> (batch, 1, width).
template <std::int64_t I>
constexpr auto vector = [](const auto& c) { return pt::slice<1, I, I + 1>(c); };

/// Normalizes x to mean 0 and variance 1, then applies the scale and shift of each example.
constexpr auto modulated = [](const auto& x, const auto& scale, const auto& shift) {
  const auto centered = x - pt::keep_last(pt::mean<2>(x));
  const auto variance = pt::keep_last(pt::mean<2>(centered * centered));
  return centered * pt::rsqrt(variance + 1e-5) * (1 + scale) + shift;
};
/// x (batch, tokens, width), c (batch, width) -> (batch, tokens, width).
constexpr auto block = [](const layer& p, const auto& x, const auto& c) {
  const auto by = pt::einsum<"bd,dpw->bpw">(pt::nn::silu(c), p.condition);
  const auto h = modulated(x, vector<0>(by), vector<1>(by));
  const auto projected = [&](const auto& w) { return pt::einsum<"bsd,dhk->bshk">(h, w); };
  const auto attended =
      pt::nn::attention(projected(p.query), projected(p.key_in), projected(p.value));
  const auto y = x + vector<2>(by) * pt::einsum<"bshk,hkd->bsd">(attended, p.out);
  const auto g = modulated(y, vector<3>(by), vector<4>(by));
  return y + vector<5>(by) * matmul(pt::nn::gelu(matmul(g, p.up)), p.down);
};
/// Mean squared error of the predicted noise; x, noise (batch, tokens, channels), t (batch) in [0,
/// 1].
constexpr auto loss = [](const parameters& p, const auto& x, const auto& noise, const auto& t) {
  const auto kept = pt::expand_dims<2>(pt::expand_dims<1>(cos(t)));
  const auto added = pt::expand_dims<2>(pt::expand_dims<1>(sin(t)));
  const auto c = matmul(waves(t), p.time);
  auto h = matmul(kept * x + added * noise, p.in);
  for (const layer& l : p.layers) h = block(l, h, c);
  return pt::nn::mean_squared_error(matmul(h, p.out), noise);
};
constexpr auto with_batch = [](const auto& traced) {
  return traced(loss, pt::input<float, batch, tokens, channels>("x"),
                pt::input<float, batch, tokens, channels>("noise"), pt::input<float, batch>("t"));
};
constexpr auto traced = [] {
  return with_batch([](const auto&... x) { return trace_adam_step<parameters>(x...); });
};
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<parameters>(x...); });
};

constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}, {"noise", 0}, {"t", 0}}, "BP");
constexpr auto MP = pt::manual("M",
                               {{"params.layers.*.query", 1},
                                {"params.layers.*.key_in", 1},
                                {"params.layers.*.value", 1},
                                {"params.layers.*.up", 1}},
                               "MP");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"opt_state", pt::first_divisible_dim}}, "Z3");

}  // namespace small::diffusion
