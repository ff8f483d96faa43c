/// A decoder-only transformer language model, its training step, and its schedules.
///
/// The model does not mention devices, and the schedules name only inputs. One model function
/// serves static sizes, which the compiler checks, and sizes that are known only at run time.
///
/// Source    Vaswani et al., arXiv:1706.03762, with the norm first: Radford et al., 2019 (GPT-2)
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <partita/partita.hpp>

namespace transformer {

namespace pt = partita;

/// Extents of the model; `dyn` for an extent that is known only when the program is traced.
struct sizes {
  std::int64_t layers, width, heads, key, hidden, vocabulary, context, batch;
};

inline constexpr sizes dynamic{pt::dyn, pt::dyn, pt::dyn, pt::dyn,
                               pt::dyn, pt::dyn, pt::dyn, pt::dyn};

// ---- Parameters ------------------------------------------------------------------------------

template <std::int64_t D>
struct norm_params {
  BOOST_HANA_DEFINE_STRUCT(norm_params, (pt::tensor<float, D>, scale),
                           (pt::tensor<float, D>, bias));
};

template <std::int64_t D, std::int64_t Heads, std::int64_t Key>
struct attention_params {
  BOOST_HANA_DEFINE_STRUCT(attention_params, (pt::tensor<float, D, 3, Heads, Key>, qkv),
                           (pt::tensor<float, Heads, Key, D>, out));
};

template <std::int64_t D, std::int64_t Hidden>
struct mlp_params {
  BOOST_HANA_DEFINE_STRUCT(mlp_params, (pt::tensor<float, D, Hidden>, up),
                           (pt::tensor<float, Hidden>, up_bias),
                           (pt::tensor<float, Hidden, D>, down), (pt::tensor<float, D>, down_bias));
};

template <std::int64_t D, std::int64_t Heads, std::int64_t Key, std::int64_t Hidden>
struct layer_params {
  BOOST_HANA_DEFINE_STRUCT(layer_params, (norm_params<D>, ln1),
                           (attention_params<D, Heads, Key>, attention), (norm_params<D>, ln2),
                           (mlp_params<D, Hidden>, mlp));
};

/// The type of the layers: an array if their number is static, otherwise a vector.
template <class Layer, std::int64_t N>
struct layer_list {
  using type = std::array<Layer, static_cast<std::size_t>(N)>;
};
template <class Layer>
struct layer_list<Layer, pt::dyn> {
  using type = std::vector<Layer>;
};

template <std::int64_t Layers, std::int64_t D, std::int64_t Heads, std::int64_t Key,
          std::int64_t Hidden, std::int64_t Vocabulary, std::int64_t Context>
struct model_params {
  using layer = layer_params<D, Heads, Key, Hidden>;
  using layers_type = typename layer_list<layer, Layers>::type;
  BOOST_HANA_DEFINE_STRUCT(model_params, (pt::tensor<float, Vocabulary, D>, token_embedding),
                           (pt::tensor<float, Context, D>, position_embedding),
                           (layers_type, layers), (norm_params<D>, final_norm),
                           (pt::tensor<float, D, Vocabulary>, head));
};

template <sizes S>
using params = model_params<S.layers, S.width, S.heads, S.key, S.hidden, S.vocabulary, S.context>;

/// Returns an unbound tensor of type T with these extents.
template <pt::Tensor T>
constexpr T with_extents(const pt::shape& extents) {
  constexpr auto is_dynamic = [](int d) { return T::static_type.shape.extents[d] == pt::dyn; };
  constexpr int count = [&] {
    int n = 0;
    for (int d = 0; d < T::rank; ++d) n += is_dynamic(d);
    return n;
  }();
  std::array<std::int64_t, static_cast<std::size_t>(count) + 1> given{};
  std::size_t next = 0;
  for (int d = 0; d < T::rank; ++d)
    if (is_dynamic(d)) given[next++] = extents[d];
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return T(given[I]...); }
  (std::make_index_sequence<static_cast<std::size_t>(count)>{});
}

/// Returns the unbound parameters of a model of these sizes, for `pt::input("params", ...)`.
template <sizes S>
constexpr params<S> params_for(const sizes& s = S) {
  const auto set = []<class T>(T& tensor, const pt::shape& extents) {
    tensor = with_extents<T>(extents);
  };
  const auto set_norm = [&](auto& norm) {
    set(norm.scale, {s.width});
    set(norm.bias, {s.width});
  };
  typename params<S>::layer layer;
  set_norm(layer.ln1);
  set(layer.attention.qkv, {s.width, 3, s.heads, s.key});
  set(layer.attention.out, {s.heads, s.key, s.width});
  set_norm(layer.ln2);
  set(layer.mlp.up, {s.width, s.hidden});
  set(layer.mlp.up_bias, {s.hidden});
  set(layer.mlp.down, {s.hidden, s.width});
  set(layer.mlp.down_bias, {s.width});
  params<S> p;
  set(p.token_embedding, {s.vocabulary, s.width});
  set(p.position_embedding, {s.context, s.width});
  if constexpr (S.layers == pt::dyn)
    p.layers.assign(static_cast<std::size_t>(s.layers), layer);
  else
    p.layers.fill(layer);
  set_norm(p.final_norm);
  set(p.head, {s.width, s.vocabulary});
  return p;
}

// ---- Model: (batch, position) of tokens -> (batch, position, vocabulary) -----------------------

constexpr auto norm = [](const auto& p, const auto& x) {
  return pt::nn::layer_norm(x, p.scale, p.bias);
};

constexpr auto mlp = [](const auto& p, const auto& x) {
  const auto hidden = pt::nn::gelu(matmul(x, p.up) + p.up_bias);  // (b, s, f)
  return matmul(hidden, p.down) + p.down_bias;                    // (b, s, d)
};

constexpr auto embedded = [](const auto& token, const auto& position, const auto& tokens) {
  return gather(token, tokens) + position;  // (b, s, d)
};
constexpr auto block = [](const auto& p, const auto& x) {
  const auto y =
      x + pt::nn::causal_self_attention(norm(p.ln1, x), p.attention.qkv, p.attention.out);
  return y + mlp(p.mlp, norm(p.ln2, y));
};
constexpr auto head = [](const auto& p, const auto& weight, const auto& x) {
  return matmul(norm(p, x), weight);  // (b, s, v)
};

/// The parts have names by which a pipeline assigns them to meshes: embedding, layers.0, ..., head.
constexpr auto logits = [](const auto& p, const auto& tokens) {
  auto x = pt::named("embedding", embedded)(p.token_embedding, p.position_embedding, tokens);
  for (std::size_t i = 0; i < p.layers.size(); ++i)
    x = pt::named("layers", static_cast<std::int64_t>(i), block)(p.layers[i], x);
  return pt::named("head", head)(p.final_norm, p.head, x);
};

constexpr auto loss = [](const auto& p, const auto& tokens, const auto& targets) {
  return pt::nn::cross_entropy(logits(p, tokens), targets);
};

/// One step of Adam; returns the next parameters, the next optimizer state, and the loss before it.
struct training_step {
  pt::adam_options adam;

  constexpr auto operator()(const auto& params, const auto& state, const auto& tokens,
                            const auto& targets) const {
    const auto [value, gradients] =
        pt::value_and_grad([&](const auto& p) { return loss(p, tokens, targets); }, params);
    const auto [next_params, next_state] = pt::adam(adam, params, gradients, state);
    return std::tuple{pt::output("params", next_params), pt::output("opt_state", next_state),
                      pt::output("loss", value)};
  }
};

/// Traces the training step: inputs params, opt_state, tokens, targets.
template <sizes S>
constexpr pt::program trace_training_step(const sizes& s = S, const pt::adam_options& adam = {}) {
  const auto p = params_for<S>(s);
  const auto tokens =
      with_extents<pt::tensor<std::int32_t, S.batch, S.context>>({s.batch, s.context});
  return pt::trace(training_step{adam}, pt::input("params", p),
                   pt::input("opt_state", pt::adam_state_for(p)), pt::input("tokens", tokens),
                   pt::input("targets", tokens));
}

/// Traces the model without training: inputs params, tokens; output logits.
template <sizes S>
constexpr pt::program trace_logits(const sizes& s = S) {
  const auto tokens =
      with_extents<pt::tensor<std::int32_t, S.batch, S.context>>({s.batch, s.context});
  return pt::trace([](const auto& p, const auto& t) { return pt::output("logits", logits(p, t)); },
                   pt::input("params", params_for<S>(s)), pt::input("tokens", tokens));
}

/// Returns the number of parameter tensors.
constexpr int parameter_count(std::int64_t layers) { return 5 + 10 * static_cast<int>(layers); }

// ---- Tactics ----------------------------------------------------------------------------------

/// Megatron's placement of one parameter: shards the heads of the attention, and the columns of the
/// MLP's first matrix. Propagation infers the rest: the rows of the second matrices, the optimizer.
constexpr auto megatron = [](std::string_view name, const pt::shape&) -> pt::placement {
  if (name.ends_with(".attention.qkv")) return 2;
  if (name.ends_with(".mlp.up")) return 1;
  return pt::unknown;
};

/// Batch parallelism: every device along "B" has a shard of the batch.
constexpr auto BP = pt::manual("B", {{"tokens", 0}, {"targets", 0}}, "BP");
/// Model parallelism (Shoeybi et al., arXiv:1909.08053).
constexpr auto MP = pt::manual("M", {{"params", megatron}}, "MP");
/// ZeRO-2: the optimizer's state sharded along "B" (Rajbhandari et al., arXiv:1910.02054).
constexpr auto Z2 =
    pt::manual("B", {{"params", pt::replicated}, {"opt_state", pt::first_divisible_dim}}, "Z2");
/// ZeRO-3: the parameters sharded, too.
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"opt_state", pt::first_divisible_dim}}, "Z3");

// ---- Initial values ---------------------------------------------------------------------------

/// Random numbers that depend only on the seed (SplitMix64: Steele, Lea and Flood, 2014).
class random_stream {
 public:
  constexpr explicit random_stream(std::uint64_t seed) : state_(seed) {}
  constexpr std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Returns a number in [0, 1).
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// Returns a number in [0, n).
  constexpr std::uint64_t below(std::uint64_t n) { return bits() % n; }
  /// Returns a nearly normal number with mean 0 and variance 1: a sum of twelve uniform ones, which
  /// is the same on every machine.
  constexpr double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  std::uint64_t state_;
};

/// Returns the standard deviation of a parameter's initial values: 0 for biases, and -1 for scales,
/// whose values are all one.
///
/// Weights have 1 / sqrt(inputs); projections onto the residual stream have 1 / sqrt(2 layers)
/// times that; embeddings have 0.02 (GPT-2).
inline double initial_deviation(std::string_view name, const pt::shape& s, std::int64_t layers) {
  if (!name.starts_with("params.") || name.ends_with("bias"))
    return 0;  // the optimizer's state is zero, too
  if (name.ends_with("scale")) return -1;
  if (name.ends_with("embedding")) return 0.02;
  const bool residual = name.ends_with(".out") || name.ends_with(".down");
  const auto inputs = name.ends_with(".out") ? s[0] * s[1] : s[0];
  return 1 / std::sqrt(static_cast<double>(inputs * (residual ? 2 * layers : 1)));
}

/// Fills an input of the training step: a parameter, or the optimizer's state with zeros. The
/// values depend on seed and name, not on the order of the parameters.
inline void initialise(std::string_view name, const pt::shape& s, std::int64_t layers,
                       std::uint64_t seed, float* out) {
  for (char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  random_stream random(seed);
  const double deviation = initial_deviation(name, s, layers);
  for (std::int64_t i = 0; i < s.elements(); ++i)
    out[i] =
        deviation < 0 ? 1.0f : static_cast<float>(deviation > 0 ? deviation * random.normal() : 0);
}

}  // namespace transformer
