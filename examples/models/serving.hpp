/// IT32: a language model that writes text with a cache of keys and values, and its tactics.
///
/// All heads of queries share one head of keys and values (multi-query attention). One step reads
/// the prompt; then each step of a loop writes one token.
///
/// Source    PartIR, arXiv:2401.11202, sections 7.1 and 7.3; Pope et al., arXiv:2211.05102,
///           section 3.3; Shazeer, arXiv:1911.02150 (multi-query attention)
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "language_model.hpp"

namespace paper {

struct serving_sizes {
  std::int64_t layers, width, heads, key, hidden, vocabulary, batch;
  std::int64_t prompt;  ///< number of tokens to read
  std::int64_t tokens;  ///< number of tokens to write, one per step
};

inline constexpr serving_sizes IT32{.layers = 32,
                                    .width = 4096,
                                    .heads = 32,
                                    .key = 128,
                                    .hidden = 4 * 4096,
                                    .vocabulary = 32768,
                                    .batch = 64,
                                    .prompt = 512,
                                    .tokens = 1536};

/// Sizes inferred from the paper's Table 3. The hidden layer is that of T32_inferred. MQ saves
/// 168.00 MiB, three quarters of the cache for an eighth of the batch, if batch times tokens is
/// 57,344: 32 examples of 1,792 tokens each; 1,536 of the tokens are written.
inline constexpr serving_sizes IT32_inferred = [] {
  serving_sizes s = IT32;
  s.hidden = T32_inferred.hidden;
  s.batch = 32;
  s.prompt = 256;
  return s;
}();

// ---- Parameters, and the cache ----------------------------------------------------------------

struct serving_layer {
  BOOST_HANA_DEFINE_STRUCT(
      serving_layer,                                                 //
      (vector, attention_norm),                                      // (d)
      (pt::tensor<float, pt::dyn, pt::dyn, pt::dyn>, queries),       // (d, heads, k)
      (pt::tensor<float, 2, pt::dyn, 1, pt::dyn>, keys_and_values),  // (2, d, 1, k)
      (pt::tensor<float, pt::dyn, pt::dyn, pt::dyn>, attended),      // (heads, k, d)
      (vector, residual_norm), (vector, dense_norm),                 // (d)
      (matrix, dense_up), (vector, dense_up_bias),                   // (d, f), (f)
      (matrix, dense_down), (vector, dense_down_bias));              // (f, d), (d)
};

struct served_model {
  BOOST_HANA_DEFINE_STRUCT(served_model, (matrix, embedding),  // (vocabulary, d)
                           (std::vector<serving_layer>, layers));
};

inline served_model served_model_of(const serving_sizes& s) {
  const serving_layer layer{.attention_norm = vector(s.width),
                            .queries = {s.width, s.heads, s.key},
                            .keys_and_values = {s.width, s.key},
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

/// Keys and values of a layer, each (b, positions, 1, k).
using layer_cache = pt::nn::kv_cache<pt::tensor<float, pt::dyn, pt::dyn, 1, pt::dyn>>;
using cache = std::vector<layer_cache>;

inline cache cache_of(const serving_sizes& s) {
  const pt::tensor<float, pt::dyn, pt::dyn, 1, pt::dyn> room(s.batch, s.prompt + s.tokens, s.key);
  return {static_cast<std::size_t>(s.layers), layer_cache{room, room}};
}

// ---- The model --------------------------------------------------------------------------------

/// Tags x with the name "phase.what", so that tactics can name it.
constexpr auto named = [](const pt::text& phase, std::string_view what, const auto& x) {
  return pt::tag(pt::concat(phase, '.', what).view(), x);
};

/// Applies one layer to x (b, s, d), whose first position is `first`; `phase` prefixes its names.
///
/// The attention's queries and result have two names each, "by_head" and "by_example". The layers
/// around the attention compute head by head; the attention can also be computed example by
/// example. Both names are of one value; a tactic can thus give it two layouts.
constexpr auto serve_layer = [](const serving_layer& p, const auto& x, layer_cache& past,
                                const auto& first, const pt::text& phase) {
  const auto normed = pt::nn::rms_norm(x, p.attention_norm);
  const auto queries = rotated(pt::einsum<"bsd,dhk->bshk">(normed, p.queries), first);
  const auto both = pt::einsum<"bsd,cdnk->cbsnk">(normed, p.keys_and_values);
  past = pt::nn::append(past, rotated(pt::squeeze<0>(pt::slice<0, 0, 1>(both)), first),
                        pt::squeeze<0>(pt::slice<0, 1, 2>(both)), first);
  const layer_cache known{named(phase, "keys", past.keys), named(phase, "values", past.values)};
  const auto found = pt::nn::attend(
      named(phase, "queries.by_example", named(phase, "queries.by_head", queries)), known, first);
  const auto attended =
      named(phase, "attended.by_head", named(phase, "attended.by_example", found));
  const auto y =
      pt::nn::rms_norm(x + pt::einsum<"bshk,hkd->bsd">(attended, p.attended), p.residual_norm);
  return y + dense(p, pt::nn::rms_norm(y, p.dense_norm));
};

/// Returns the maximum logit (b) after tokens (b, s), and its token (b).
constexpr auto next_token = [](const served_model& p, const auto& tokens, cache& past,
                               const auto& first, std::string_view phase) {
  auto x = pt::nn::embedding(p.embedding, tokens);  // (b, s, d)
  for (std::size_t l = 0; l < p.layers.size(); ++l)
    x = serve_layer(p.layers[l], x, past[l], first, pt::concat(phase, '.', l));
  const auto last = pt::squeeze<1>(pt::slice<1, 0, 1>(pt::flip<1>(x)));  // (b, d)
  return pt::max_with_position<1>(pt::einsum<"bd,vd->bv">(last, p.embedding));
};

/// Reads the prompts (b, prompt) and writes `tokens` tokens for each. Returns the first token (b)
/// and the others (tokens - 1, b), each with its logit.
struct serve {
  serving_sizes sizes;

  auto operator()(const served_model& p, const auto& prompts, cache past) const {
    const auto first = next_token(p, prompts, past, 0, "prefill");
    const auto positions = pt::iota<std::int32_t, 0>(prompts, sizes.tokens - 1) +
                           static_cast<std::int32_t>(sizes.prompt);
    const auto write = [&](const auto& carried, const auto& position) {
      auto [token, known] = carried;
      const auto next = next_token(p, pt::expand_dims<1>(token), known, position, "decode");
      return std::pair{std::tuple{std::get<1>(next), known}, next};
    };
    const auto [last, others] = pt::scan(write, std::tuple{std::get<1>(first), past}, positions);
    return std::tuple{pt::output("first", first), pt::output("others", others)};
  }
};

inline pt::program trace_serving(const serving_sizes& s) {
  return pt::trace(serve{s}, pt::input("params", served_model_of(s)),
                   pt::input<std::int32_t, pt::dyn, pt::dyn>("tokens", s.batch, s.prompt),
                   pt::input("cache", cache_of(s)));
}

// ---- Tactics ----------------------------------------------------------------------------------

namespace serving {

constexpr auto megatron = [](std::string_view name, const pt::shape&) -> pt::placement {
  if (name.ends_with(".queries")) return 1;
  if (name.ends_with(".dense_up")) return 1;
  return pt::unknown;
};
constexpr auto border = [](std::string_view name, const pt::shape&) -> pt::placement {
  if (name.ends_with(".by_example")) return 0;
  if (name.ends_with(".by_head")) return 2;
  return pt::unknown;
};
constexpr auto whole_cache = [](std::string_view name, const pt::shape&) -> pt::placement {
  if (name.ends_with(".keys") || name.ends_with(".values")) return pt::replicated;
  return pt::unknown;
};

/// Batch parallelism.
constexpr auto BP = pt::manual("batch", {{"tokens", 0}}, "BP");
/// Megatron's model parallelism.
constexpr auto MP = pt::manual("model", {{"params", megatron}}, "MP");
/// Multi-query sharding: the cache is sharded by examples along the model axis, too. While tokens
/// are written, the attention is computed example by example, with one all-to-all for the queries
/// and one for the result. While the prompt is read, it is computed head by head, on gathered keys
/// and values.
///
/// MQ comes before MP, which shards the remaining values.
constexpr auto MQ =
    pt::manual("model", {{"cache", 0}, {"decode", border}, {"prefill", whole_cache}}, "MQ");

}  // namespace serving

}  // namespace paper
