/// A vision transformer; its tokens are patches of images.
///
/// Source    Dosovitskiy et al., arXiv:2010.11929
#pragma once

#include <array>
#include <cstdint>

#include "step.hpp"

namespace small::vision {

constexpr std::int64_t depth = 2, batch = 8, side = 8, patch = 2, colors = 3, width = 16, heads = 4,
                       key = 4, hidden = 32, classes = 8, patches = side * side / patch / patch;

struct norm {
  using vector = pt::tensor<float, width>;
  BOOST_HANA_DEFINE_STRUCT(norm, (vector, scale), (vector, bias));
};
struct layer {
  using in_matrix = pt::tensor<float, width, 3, heads, key>;
  using out_matrix = pt::tensor<float, heads, key, width>;
  using up_matrix = pt::tensor<float, width, hidden>;
  using down_matrix = pt::tensor<float, hidden, width>;
  BOOST_HANA_DEFINE_STRUCT(layer, (norm, ln1), (in_matrix, qkv), (out_matrix, out), (norm, ln2),
                           (up_matrix, up), (down_matrix, down));
};
struct parameters {
  using kernel = pt::tensor<float, patch, patch, colors, width>;
  using positions = pt::tensor<float, patches, width>;
  using all_layers = std::array<layer, depth>;
  using head_matrix = pt::tensor<float, width, classes>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (kernel, embed), (positions, position), (all_layers, layers),
                           (norm, ln), (head_matrix, head));
};

constexpr auto normalized = [](const norm& p, const auto& x) {
  return pt::nn::layer_norm(x, p.scale, p.bias);
};
/// Returns queries, keys or values: (batch, patches, 3, heads, key) -> (batch, patches, heads,
/// key).
template <std::int64_t I>
constexpr auto part = [](const auto& x) { return pt::squeeze<2>(pt::slice<2, I, I + 1>(x)); };

/// (batch, patches, width) -> the same.
constexpr auto block = [](const layer& p, const auto& x) {
  const auto qkv = pt::einsum<"bsd,dihk->bsihk">(normalized(p.ln1, x), p.qkv);
  const auto attended = pt::nn::attention(part<0>(qkv), part<1>(qkv), part<2>(qkv));
  const auto y = x + pt::einsum<"bshk,hkd->bsd">(attended, p.out);
  return y + matmul(pt::nn::gelu(matmul(normalized(p.ln2, y), p.up)), p.down);
};
/// Mean cross entropy of the predicted classes; images (batch, side, side, colors), labels (batch).
constexpr auto loss = [](const parameters& p, const auto& images, const auto& labels) {
  const auto grid = pt::conv<pt::conv_options{.strides = {patch, patch}}>(images, p.embed);
  const auto tokens =
      pt::reshape(grid, pt::extent<batch>{}, pt::extent<patches>{}, pt::extent<width>{});
  auto x = tokens + p.position;
  for (const layer& l : p.layers) x = block(l, x);
  return pt::nn::cross_entropy(matmul(pt::mean<1>(normalized(p.ln, x)), p.head), labels);
};
constexpr auto with_batch = [](const auto& traced) {
  return traced(loss, pt::input<float, batch, side, side, colors>("images"),
                pt::input<std::int32_t, batch>("labels"));
};
constexpr auto traced = [] {
  return with_batch([](const auto&... x) { return trace_adam_step<parameters>(x...); });
};
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<parameters>(x...); });
};

constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"images", 0}, {"labels", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"params.layers.*.qkv", 2}, {"params.layers.*.up", 1}}, "MP");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"opt_state", pt::first_divisible_dim}}, "Z3");

}  // namespace small::vision
