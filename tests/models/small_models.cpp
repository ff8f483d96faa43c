// Models that differ in what they communicate: adapters of low rank, a recurrence, and a
// contrastive loss, each with the collectives that one writes by hand.
#include "models.hpp"

namespace {

namespace pt = partita;
constexpr auto any_limit = [](std::string_view) { return 8; };

namespace lora {  // Hu et al., arXiv:2106.09685: weights are frozen, their adapters are trained

constexpr std::int64_t rows = 8, width = 16, hidden = 32, rank = 2;

struct frozen_weights {
  using up_matrix = pt::tensor<float, width, hidden>;
  using down_matrix = pt::tensor<float, hidden, width>;
  BOOST_HANA_DEFINE_STRUCT(frozen_weights, (up_matrix, up), (down_matrix, down));
};
struct adapters {
  using in_up = pt::tensor<float, width, rank>;
  using out_up = pt::tensor<float, rank, hidden>;
  using in_down = pt::tensor<float, hidden, rank>;
  using out_down = pt::tensor<float, rank, width>;
  BOOST_HANA_DEFINE_STRUCT(adapters, (in_up, up_a), (out_up, up_b), (in_down, down_a),
                           (out_down, down_b));
};
constexpr auto step = [](const frozen_weights& w, const adapters& p, const auto& x, const auto& y) {
  const auto loss = [&](const adapters& each) {
    const auto h = pt::nn::gelu(matmul(x, w.up) + matmul(matmul(x, each.up_a), each.up_b));
    const auto out = matmul(h, w.down) + matmul(matmul(h, each.down_a), each.down_b);
    return pt::nn::mean_squared_error(x + out, y);
  };
  const auto [value, g] = pt::value_and_grad(loss, p);
  return std::tuple{pt::output("params", pt::sgd(0.1, p, g)), pt::output("loss", value)};
};
constexpr auto traced = [] {
  return pt::trace(step, pt::input<frozen_weights>("frozen"), pt::input<adapters>("params"),
                   pt::input<float, rows, width>("x"), pt::input<float, rows, width>("y"));
};
constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}, {"y", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"frozen.up", 1}}, "MP");
constexpr auto Z3 = pt::manual("B", {{"frozen", pt::first_divisible_dim}}, "Z3");

}  // namespace lora

namespace gru {  // Cho et al., arXiv:1406.1078, a loop over time

constexpr std::int64_t steps = 6, rows = 8, width = 8, hidden = 16;

struct parameters {
  using in_matrix = pt::tensor<float, width, 3, hidden>;
  using recurrent_matrix = pt::tensor<float, hidden, 3, hidden>;
  using bias_vectors = pt::tensor<float, 3, hidden>;
  using out_matrix = pt::tensor<float, hidden, width>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (in_matrix, in), (recurrent_matrix, recurrent),
                           (bias_vectors, bias), (out_matrix, out));
};
/// Gate G of three: (rows, 3, hidden) -> (rows, hidden).
template <std::int64_t G>
constexpr auto gate = [](const auto& x) { return pt::squeeze<1>(pt::slice<1, G, G + 1>(x)); };

constexpr auto step = [](const parameters& p, const auto& x, const auto& start, const auto& y) {
  const auto loss = [&](const parameters& each) {
    const auto next = [&](const auto& h, const auto& in) {
      const auto from = pt::einsum<"bh,hgk->bgk">(h, each.recurrent);
      const auto update = pt::nn::sigmoid(gate<0>(in) + gate<0>(from));
      const auto reset = pt::nn::sigmoid(gate<1>(in) + gate<1>(from));
      const auto state = (1 - update) * tanh(gate<2>(in) + reset * gate<2>(from)) + update * h;
      return std::pair{state, state};
    };
    const auto [last, states] =
        pt::scan(next, start, pt::einsum<"tbd,dgh->tbgh">(x, each.in) + each.bias);
    return pt::nn::mean_squared_error(pt::einsum<"tbh,hd->tbd">(states, each.out), y);
  };
  const auto [value, g] = pt::value_and_grad(loss, p);
  return std::tuple{pt::output("params", pt::sgd(0.1, p, g)), pt::output("loss", value)};
};
constexpr auto traced = [] {
  return pt::trace(step, pt::input<parameters>("params"), pt::input<float, steps, rows, width>("x"),
                   pt::input<float, rows, hidden>("start"),
                   pt::input<float, steps, rows, width>("y"));
};
constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 1}, {"start", 0}, {"y", 1}}, "BP");
constexpr auto MP = pt::manual("M", {{"params.in", 2}, {"params.recurrent", 2}}, "MP");

}  // namespace gru

namespace contrastive {  // CLIP, Radford et al., arXiv:2103.00020

constexpr std::int64_t pairs = 8, width = 16, embedded = 8;

struct parameters {
  using projection = pt::tensor<float, width, embedded>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (projection, image), (projection, text),
                           (pt::tensor<float>, scale));
};
constexpr auto step = [](const parameters& p, const auto& images, const auto& texts) {
  const auto loss = [&](const parameters& each) {
    const auto unit = [](const auto& v) {
      return v * pt::rsqrt(pt::keep_last(pt::sum<1>(v * v)) + 1e-6);
    };
    const auto a = unit(matmul(images, each.image)), b = unit(matmul(texts, each.text));
    const auto logits = pt::tag("logits", pt::einsum<"ie,je->ij">(a, b) * exp(each.scale));
    const auto own = pt::iota<std::int32_t, 0>(images, pt::extent<pairs>{});
    return pt::nn::cross_entropy(logits, own) +
           pt::nn::cross_entropy(pt::transpose<1, 0>(logits), own);
  };
  const auto [value, g] = pt::value_and_grad(loss, p);
  return std::tuple{pt::output("params", pt::sgd(0.1, p, g)), pt::output("loss", value)};
};
constexpr auto traced = [] {
  return pt::trace(step, pt::input<parameters>("params"), pt::input<float, pairs, width>("images"),
                   pt::input<float, pairs, width>("texts"));
};
constexpr pt::mesh mesh{{"B", 4}};
/// Each device has the logits of its images.
constexpr auto rows = pt::manual("B", {{"logits", 0}}, "rows");
constexpr auto BP = pt::manual("B", {{"images", 0}, {"texts", 0}}, "BP");

}  // namespace contrastive

}  // namespace

TEST_CASE("adapters of low rank: only they are reduced") {
  using namespace lora;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = 4 + 1});
  // Behind `down`, and what its adapter makes in between, forward; in front of the adapter of `up`
  // backward, since `x` has no gradient.
  CHECK(model.emulated(mesh, BP, MP) == pt::collectives{.all_reduce = 4 + 1 + 3});
  // Frozen weights are gathered: once for the forward pass, `down` once for its cotangent.
  CHECK(model.emulated(mesh, BP, MP, Z3) == pt::collectives{.all_gather = 3, .all_reduce = 8});
  CHECK(model.rewritten({.share_gathers = true}, mesh, BP, MP, Z3).collectives ==
        pt::collectives{.all_gather = 2, .all_reduce = 8});
}
TEST_CASE("a recurrence: gradients are reduced behind the loop, states are gathered in it") {
  using namespace gru;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = 4 + 1});
  // In each step the state is gathered, forward and where the derivative computes the step again;
  // its cotangent is scattered. Behind the loop: the product with `out`.
  CHECK(model.rewritten({.share_gathers = true}, mesh, MP).collectives ==
        pt::collectives{.all_gather = 2 * steps, .all_reduce = 1, .reduce_scatter = steps});
  CHECK(model.rewritten({.share_gathers = true}, mesh, BP, MP).collectives ==
        pt::collectives{.all_gather = 2 * steps, .all_reduce = 5 + 1, .reduce_scatter = steps});
}
TEST_CASE("a contrastive loss: one side is gathered, and its cotangent scattered") {
  using namespace contrastive;
  const models::source model(traced(), any_limit);
  // All-reduced: two projections and the scale; two losses; largest element and sum of columns.
  CHECK(model.rewritten({.share_gathers = true}, mesh, rows, BP).collectives ==
        pt::collectives{.all_gather = 1, .all_reduce = 3 + 2 + 2, .reduce_scatter = 1});
}
