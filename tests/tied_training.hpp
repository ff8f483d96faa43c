// A training step for tests of pipelines: a small transformer whose embedding and head are one
// table, with dropout after each layer. Gradients are clipped by the global norm.
#pragma once

#include <array>
#include <string_view>
#include <tuple>
#include <vector>

#include <partita/partita.hpp>

#include "data.hpp"

namespace tied {

struct tied_layer {
  using matrix = partita::tensor<float, 8, 16>;
  using back = partita::tensor<float, 16, 8>;
  using vector = partita::tensor<float, 8>;
  using heads = partita::tensor<float, 8, 3, 2, 4>;
  using joined = partita::tensor<float, 2, 4, 8>;
  BOOST_HANA_DEFINE_STRUCT(tied_layer, (vector, scale), (vector, bias), (heads, qkv), (joined, out),
                           (matrix, up), (back, down));
};
struct tied_params {
  using table = partita::tensor<float, 12, 8>;
  using layer_list = std::array<tied_layer, 4>;
  BOOST_HANA_DEFINE_STRUCT(tied_params, (table, embedding), (layer_list, layers));
};

inline constexpr auto tied_loss = [](const auto& p, const auto& tokens, const auto& targets,
                                     const auto& key) {
  auto x = partita::named("embedding", [](const auto& table, const auto& t) {
    return gather(table, t);
  })(p.embedding, tokens);
  for (std::size_t i = 0; i < p.layers.size(); ++i)
    x = partita::named("layers", static_cast<std::int64_t>(i), [&](const auto& l, const auto& h) {
      const auto a = partita::nn::layer_norm(h, l.scale, l.bias);
      const auto b = h + partita::nn::causal_self_attention(a, l.qkv, l.out);
      const auto c = b + matmul(partita::nn::gelu(matmul(b, l.up)), l.down);
      return partita::nn::dropout(c, partita::fold_in(key, static_cast<std::int64_t>(i)), 0.1);
    })(p.layers[i], x);
  return partita::named("head", [&](const auto& table, const auto& h) {
    return partita::nn::cross_entropy(matmul(h, partita::transpose<1, 0>(table)), targets);
  })(p.embedding, x);
};
inline constexpr auto tied_step = [](const auto& p, const auto& state, const auto& tokens,
                                     const auto& targets, const auto& key) {
  const auto [loss, g] =
      partita::value_and_grad([&](const auto& q) { return tied_loss(q, tokens, targets, key); }, p);
  const auto [clipped, norm] = partita::clip_by_global_norm(g, 0.5);
  const auto [next, next_state] = partita::adam(partita::adam_options{}, p, clipped, state);
  return std::tuple{partita::output("params", next), partita::output("state", next_state),
                    partita::output("loss", loss), partita::output("norm", norm)};
};
inline partita::program tied_training() {
  const tied_params p;
  return partita::trace(
      tied_step, partita::input("params", p), partita::input("state", partita::adam_state_for(p)),
      partita::input<std::int32_t, 16, 6>("tokens"), partita::input<std::int32_t, 16, 6>("targets"),
      partita::input<std::int64_t>("key"));
}
inline std::vector<partita::array> tied_arguments(const partita::program& f) {
  data::random r{5};
  std::vector<partita::array> out;
  for (int i = 0; i < f.input_count(); ++i) {
    const partita::tensor_type& t = f.input_type(i);
    if (partita::is_floating(t.element)) {
      const bool state = f.input_name(i).substr(0, 5) == "state";
      out.push_back(data::fill(t, [&](std::int64_t) {
        return state ? 0.0 : static_cast<double>(r.in(-100, 100)) / 200;
      }));
    } else {
      out.push_back(data::integers(t, r, 0, 11));
    }
  }
  return out;
}

inline constexpr std::string_view mesh_names[] = {"m0", "m1", "m2", "m3"};
/// The model in two or four stages, assigned to the meshes as an order requires.
inline partita::assignment stages(int count, const partita::pipeline_order& order, int meshes) {
  constexpr std::string_view parts[] = {"embedding", "layers.0", "layers.1",
                                        "layers.2",  "layers.3", "head"};
  constexpr int of_two[] = {0, 0, 0, 1, 1, 1}, of_four[] = {0, 0, 1, 2, 3, 3};
  partita::assignment where;
  for (int i = 0; i < 6; ++i) {
    const int stage = count == 2 ? of_two[i] : of_four[i];
    where.names.push_back({parts[i], mesh_names[order.mesh_of(stage, {meshes, count, 1})], stage});
  }
  return where;
}
inline partita::topology topology_of(int meshes) {
  partita::topology t;
  for (int i = 0; i < meshes; ++i) t.push_back({mesh_names[i], {{"B", 2}}});
  return t;
}

}  // namespace tied
