/// Attention over a sharded sequence: resharded by heads for the attention (Ulysses), or with
/// sharded queries and all keys and values (ring).
///
/// Source    Jacobs et al. (DeepSpeed Ulysses), arXiv:2309.14509; Liu et al., arXiv:2310.01889
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "step.hpp"

namespace small::long_attention {

constexpr std::int64_t batch = 2, sequence = 16, width = 8, heads = 4, key = 4;

struct parameters {
  using scale_vector = pt::tensor<float, width>;
  using in_matrix = pt::tensor<float, width, heads, key>;
  using out_matrix = pt::tensor<float, heads, key, width>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (scale_vector, norm), (in_matrix, query),
                           (in_matrix, key_in), (in_matrix, value), (out_matrix, out));
};

/// x (batch, sequence, width) -> the same.
constexpr auto block = [](const parameters& p, const auto& x) {
  const auto h = pt::nn::rms_norm(x, p.norm);
  const auto projected = [&](const auto& w) { return pt::einsum<"bsd,dhk->bshk">(h, w); };
  const auto in =
      pt::tag("rows", std::array{projected(p.query), projected(p.key_in), projected(p.value)});
  const auto [q, k, v] = pt::tag("heads", in);
  const auto attended = pt::tag("heads.attended", pt::nn::attention(q, k, v, {.causal = true}));
  const auto out = pt::tag("rows.attended", attended);
  return x + pt::einsum<"bshk,hkd->bsd">(out, p.out);
};
constexpr auto loss = [](const parameters& p, const auto& x, const auto& y) {
  return pt::nn::mean_squared_error(block(p, x), y);
};
constexpr auto with_batch = [](const auto& traced) {
  return traced(loss, pt::input<float, batch, sequence, width>("x"),
                pt::input<float, batch, sequence, width>("y"));
};
constexpr auto traced = [] {
  return with_batch([](const auto&... x) { return trace_step<parameters>(x...); });
};
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<parameters>(x...); });
};

constexpr pt::mesh mesh{{"S", 4}};
constexpr auto SP = pt::manual("S", {{"x", 1}, {"y", 1}}, "SP");
constexpr auto ulysses = pt::manual("S", {{"rows", 1}, {"heads", 2}}, "Ulysses");
/// Each device has a shard of the queries, and needs all keys and values.
constexpr auto queries = pt::manual("S", {{"heads.0", 1}}, "queries");

}  // namespace small::long_attention
