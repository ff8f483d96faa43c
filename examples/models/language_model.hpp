/// T32 and T48: the paper's language models, after Chinchilla, and their tactics.
///
/// Source    PartIR, arXiv:2401.11202, sections 7.1 and 7.3, appendices A.3 and A.6; Hoffmann et
///           al., arXiv:2203.15556 (Chinchilla)
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "training.hpp"

namespace paper {

struct language_model_sizes {
  std::int64_t layers, width, heads, key, hidden, vocabulary, context, batch;
};

inline constexpr language_model_sizes T32{.layers = 32,
                                          .width = 4096,
                                          .heads = 32,
                                          .key = 128,
                                          .hidden = 4 * 4096,
                                          .vocabulary = 32768,
                                          .context = 2048,
                                          .batch = 48};
inline constexpr language_model_sizes T48{.layers = 48,
                                          .width = 8192,
                                          .heads = 64,
                                          .key = 128,
                                          .hidden = 4 * 8192,
                                          .vocabulary = 32768,
                                          .context = 2048,
                                          .batch = 64};

/// T32 with the sizes that the appendix leaves open, inferred from the paper's figures. They
/// explain these figures (`bench_validate --table1 FILE --table3 FILE`).
///
/// Hidden    Table 3's estimate drops by 9,702.00 MiB from BP+MP to BP+MP+Z2: 7/8 of the two
/// moments
///           of a device's parameters under MP. These are vocabulary d + layers (4 d d + 2 d f) / 4
///           = 1,386 Mi numbers, so f = 11,936 (11,984 with 32,000 tokens). T32 then has 5.4B
///           parameters, and T48 with twice that f 31.9B; the paper states 5B and 32B. With f = 4 d
///           they are 6.6B and 38.9B
/// Context   512 tokens: the peaks of Table 1, and those of BP and MP in Table 3, are explained
inline constexpr language_model_sizes T32_inferred = [] {
  language_model_sizes s = T32;
  s.hidden = 11936;
  s.context = 512;
  return s;
}();
inline constexpr language_model_sizes T48_inferred = [] {
  language_model_sizes s = T48;
  s.hidden = 2 * T32_inferred.hidden;
  s.context = T32_inferred.context;
  return s;
}();

// ---- Parameters: nine per layer, and the embedding --------------------------------------------

struct transformer_layer {
  BOOST_HANA_DEFINE_STRUCT(transformer_layer,         //
                           (vector, attention_norm),  // (d)
                           (pt::tensor<float, 3, pt::dyn, pt::dyn, pt::dyn>,
                            qkv),  // (3, d, heads, k)
                           (pt::tensor<float, pt::dyn, pt::dyn, pt::dyn>,
                            attended),                                        // (heads, k, d)
                           (vector, residual_norm),                           // (d)
                           (vector, dense_norm),                              // (d)
                           (matrix, dense_up), (vector, dense_up_bias),       // (d, f), (f)
                           (matrix, dense_down), (vector, dense_down_bias));  // (f, d), (d)
};

struct language_model {
  BOOST_HANA_DEFINE_STRUCT(language_model, (matrix, embedding),  // (vocabulary, d)
                           (std::vector<transformer_layer>, layers));
};

constexpr language_model language_model_of(const language_model_sizes& s) {
  const transformer_layer layer{.attention_norm = vector(s.width),
                                .qkv = {s.width, s.heads, s.key},
                                .attended = {s.heads, s.key, s.width},
                                .residual_norm = vector(s.width),
                                .dense_norm = vector(s.width),
                                .dense_up = matrix(s.width, s.hidden),
                                .dense_up_bias = vector(s.hidden),
                                .dense_down = matrix(s.hidden, s.width),
                                .dense_down_bias = vector(s.width)};
  return {.embedding = matrix(s.vocabulary, s.width),
          .layers = {static_cast<std::size_t>(s.layers), layer}};
}

// ---- The model --------------------------------------------------------------------------------

/// Returns queries, keys and values, each (b, s, heads, k), of x (b, s, d).
constexpr auto project = [](const auto& qkv, const auto& x) {
  const auto all = pt::einsum<"bsd,cdhk->cbshk">(x, qkv);
  return std::tuple{pt::squeeze<0>(pt::slice<0, 0, 1>(all)),
                    pt::squeeze<0>(pt::slice<0, 1, 2>(all)),
                    pt::squeeze<0>(pt::slice<0, 2, 3>(all))};
};

constexpr auto dense = [](const auto& p, const auto& x) {
  const auto hidden = pt::nn::gelu(pt::nn::linear(x, p.dense_up, p.dense_up_bias));  // (b, s, f)
  return pt::nn::linear(hidden, p.dense_down, p.dense_down_bias);                    // (b, s, d)
};

/// Applies a rotary position embedding to queries or keys, which has no parameters.
constexpr auto rotated = [](const auto& x, const auto& first) {
  return pt::nn::rotary<pt::nn::rotary_pairs::halves>(x, first);
};

constexpr auto transformer_block = [](const auto& layer, const auto& in) {
  const auto [q, k, v] = project(layer.qkv, pt::nn::rms_norm(in, layer.attention_norm));
  const auto heads = pt::nn::causal_attention(rotated(q, 0), rotated(k, 0), v);  // (b, heads, s, k)
  auto x = in + pt::einsum<"bhsk,hkd->bsd">(heads, layer.attended);
  x = pt::nn::rms_norm(x, layer.residual_norm);  // the additional one
  return x + dense(layer, pt::nn::rms_norm(x, layer.dense_norm));
};

/// Tokens (b, s) -> logits (b, s, vocabulary). The embedding is also the last layer. The parts have
/// names by which a pipeline assigns them to meshes: "embedding", "layers.0", ..., "head".
constexpr auto language_model_logits = [](const auto& p, const auto& tokens) {
  auto x = pt::named("embedding", [](const auto& table, const auto& t) {
    return pt::nn::embedding(table, t);
  })(p.embedding, tokens);  // (b, s, d)
  for (std::size_t i = 0; i < p.layers.size(); ++i)
    x = pt::named("layers", static_cast<std::int64_t>(i), transformer_block)(p.layers[i], x);
  return pt::named("head", [](const auto& table, const auto& h) {
    return pt::einsum<"bsd,vd->bsv">(h, table);
  })(p.embedding, x);
};

constexpr pt::program trace_training_step(const language_model_sizes& s) {
  const auto loss = [](const auto& p, const auto& tokens, const auto& targets) {
    return pt::nn::cross_entropy(language_model_logits(p, tokens), targets);
  };
  const pt::tensor<std::int32_t, pt::dyn, pt::dyn> tokens(s.batch, s.context);
  return trace_training_step(loss, language_model_of(s), pt::input("tokens", tokens),
                             pt::input("targets", tokens));
}

// ---- Tactics ----------------------------------------------------------------------------------

namespace transformers {

/// True if `name` is one of the four matrices of a layer, or the embedding.
constexpr bool is_matrix(std::string_view name) {
  for (std::string_view each : {".qkv", ".attended", ".dense_up", ".dense_down", ".embedding"})
    if (name.ends_with(each)) return true;
  return false;
}
constexpr auto matrices = [](std::string_view name, const pt::shape&) -> pt::placement {
  return is_matrix(name) ? pt::placement(pt::first_divisible_dim) : pt::placement(pt::unknown);
};
/// Shards heads, and the columns of the dense layers' first matrix; propagation infers the rest.
constexpr auto megatron = [](std::string_view name, const pt::shape&) -> pt::placement {
  if (name.ends_with(".qkv")) return 2;
  if (name.ends_with(".dense_up")) return 1;
  return pt::unknown;
};

/// Batch parallelism.
constexpr auto BP = pt::manual("batch", {{"tokens", 0}, {"targets", 0}}, "BP");
/// Megatron's model parallelism.
constexpr auto MP = pt::manual("model", {{"params", megatron}}, "MP");
/// ZeRO-2: the optimizer's state sharded along the batch axis, the parameters replicated.
constexpr auto Z2 =
    pt::manual("batch", {{"params", pt::replicated}, {"opt_state", matrices}}, "Z2");
/// ZeRO-3: the parameters sharded, too.
constexpr auto Z3 = pt::manual("batch", {{"params", matrices}, {"opt_state", matrices}}, "Z3");
/// Shards the columns of the embedding, and with them the activations between the layers.
constexpr auto EMB = pt::manual("model", {{"params.embedding", 1}}, "EMB");

}  // namespace transformers

}  // namespace paper
