// A Llama-style transformer (RMS norm, rotary embedding, grouped queries, SwiGLU) under batch,
// model and sequence parallelism and fully sharded parameters: the counts of Megatron-LM.
#include "models.hpp"

namespace {

namespace pt = partita;

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
constexpr auto step = [](const parameters& p, const auto& state, const auto& tokens,
                         const auto& targets) {
  const auto loss = [&](const parameters& each) {
    auto x = pt::tag("residual", pt::nn::embedding(each.embed, tokens));
    for (const layer& l : each.layers) x = block(l, x);
    return pt::nn::cross_entropy(matmul(pt::nn::rms_norm(x, each.norm), each.head), targets);
  };
  const auto [value, g] = pt::value_and_grad(loss, p);
  const auto [next, next_state] = pt::adam({}, p, g, state);
  return std::tuple{pt::output("params", next), pt::output("opt_state", next_state),
                    pt::output("loss", value)};
};
constexpr auto traced = [] {
  return pt::trace(step, pt::input<parameters>("params"),
                   pt::input("opt_state", pt::adam_state_for(parameters{})),
                   pt::input<std::int32_t, batch, sequence>("tokens"),
                   pt::input<std::int32_t, batch, sequence>("targets"));
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
/// Between attention and MLP, activations are sharded along the sequence.
constexpr auto SP = pt::manual("M", {{"residual", 1}}, "SP");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"opt_state", pt::first_divisible_dim}}, "Z3");

constexpr int L = depth, parameter_count = 9 * L + 3;
// The norms of each layer, the last one, the embedding and the head are whole along "M".
constexpr int whole_count = 2 * L + 3;

constexpr auto data_parallel = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP)); };
// Gradients and the loss over "B"; behind attention and MLP over "M", and in front of them
// backward.
static_assert(pt::check<data_parallel>.collectives ==
              pt::collectives{.all_reduce = parameter_count + 1 + 4 * L});

}  // namespace

TEST_CASE("a Llama-style transformer: the collectives of Megatron") {
  const models::source llama(traced(), [](std::string_view) { return 12; });
  const pt::passes shared{.share_gathers = true};
  CHECK(llama.emulated(mesh, BP) == pt::collectives{.all_reduce = parameter_count + 1});
  CHECK(llama.emulated(mesh, BP, MP) == pt::check<data_parallel>.collectives);
  // Each of these sums becomes a scatter, with a gather at the other end. Where two devices of a
  // batch have parts of a sequence, they have parts of what is whole, too.
  CHECK(llama.rewritten(shared, mesh, BP, MP, SP).collectives ==
        pt::collectives{
            .all_gather = 4 * L, .all_reduce = parameter_count + 1, .reduce_scatter = 4 * L});
  // Parameters are gathered, and kept for the derivative; gradients are scattered. What is whole
  // along "M" is summed along it, and so is the loss.
  CHECK(llama.rewritten(shared, mesh, BP, MP, SP, Z3).collectives ==
        pt::collectives{.all_gather = 4 * L + parameter_count,
                        .all_reduce = whole_count + 1,
                        .reduce_scatter = 4 * L + parameter_count});
}
