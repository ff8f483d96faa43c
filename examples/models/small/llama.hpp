/// A Llama-style transformer (RMS norm, rotary embedding, grouped queries, SwiGLU) with schedules
/// for batch, model and sequence parallelism and fully sharded parameters.
///
/// Source    Touvron et al., arXiv:2302.13971; Korthikanti et al., arXiv:2205.05198
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "step.hpp"

namespace small::llama {

constexpr std::int64_t depth = 2, batch = 4, sequence = 8, width = 16, heads = 4, key_heads = 2,
                       key = 4, hidden = 32, vocabulary = 12;

struct layer {
  using scale = pt::tensor<float, width>;
  using query_matrix = pt::tensor<float, width, heads, key>;
  using key_matrix = pt::tensor<float, width, key_heads, key>;
  using out_matrix = pt::tensor<float, heads, key, width>;
  using up_matrix = pt::tensor<float, width, hidden>;
  using down_matrix = pt::tensor<float, hidden, width>;
  BOOST_HANA_DEFINE_STRUCT(layer, (scale, norm1), (query_matrix, wq), (key_matrix, wk),
                           (key_matrix, wv), (out_matrix, wo), (scale, norm2), (up_matrix, gate),
                           (up_matrix, up), (down_matrix, down));
};
struct parameters {
  using table = pt::tensor<float, vocabulary, width>;
  using all_layers = std::array<layer, depth>;
  using scale = pt::tensor<float, width>;
  using head_matrix = pt::tensor<float, width, vocabulary>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (table, embed), (all_layers, layers), (scale, norm),
                           (head_matrix, head));
};

/// (batch, sequence, width) -> the same.
constexpr auto block = [](const layer& p, const auto& x) {
  const auto h = pt::nn::rms_norm(x, p.norm1);
  const auto turned = [&](const auto& w) {
    return pt::nn::rotary<pt::nn::rotary_pairs::halves>(pt::einsum<"bsd,dhk->bshk">(h, w), 0);
  };
  const auto attended = pt::nn::attention(turned(p.wq), turned(p.wk),
                                          pt::einsum<"bsd,dhk->bshk">(h, p.wv), {.causal = true});
  const auto y = pt::tag("residual", x + pt::einsum<"bshk,hkd->bsd">(attended, p.wo));
  const auto g = pt::nn::rms_norm(y, p.norm2);
  return pt::tag("residual", y + matmul(pt::nn::silu(matmul(g, p.gate)) * matmul(g, p.up), p.down));
};
/// Mean cross entropy of the next tokens, (batch, sequence).
constexpr auto loss = [](const parameters& p, const auto& tokens, const auto& targets) {
  auto x = pt::tag("residual", pt::nn::embedding(p.embed, tokens));
  for (const layer& l : p.layers) x = block(l, x);
  return pt::nn::cross_entropy(matmul(pt::nn::rms_norm(x, p.norm), p.head), targets);
};
constexpr auto with_batch = [](const auto& traced) {
  return traced(loss, pt::input<std::int32_t, batch, sequence>("tokens"),
                pt::input<std::int32_t, batch, sequence>("targets"));
};
constexpr auto traced = [] {
  return with_batch([](const auto&... x) { return trace_adam_step<parameters>(x...); });
};
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<parameters>(x...); });
};

constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"tokens", 0}, {"targets", 0}}, "BP");
constexpr auto MP = pt::manual("M",
                               {{"params.layers.*.wq", 1},
                                {"params.layers.*.wk", 1},
                                {"params.layers.*.wv", 1},
                                {"params.layers.*.gate", 1},
                                {"params.layers.*.up", 1}},
                               "MP");
/// Sequence parallelism: activations between attention and MLP are sharded along the sequence.
constexpr auto SP = pt::manual("M", {{"residual", 1}}, "SP");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"opt_state", pt::first_divisible_dim}}, "Z3");

}  // namespace small::llama
