// Attention over a sequence in parts (DeepSpeed Ulysses): queries, keys, values and what is
// attended change between parts of the sequence and heads, in both passes: eight all-to-alls.
#include "models.hpp"

namespace {

namespace pt = partita;

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
constexpr auto step = [](const parameters& p, const auto& x, const auto& y) {
  const auto [value, g] = pt::value_and_grad(
      [&](const parameters& each) { return pt::nn::mean_squared_error(block(each, x), y); }, p);
  return std::tuple{pt::output("params", pt::sgd(0.1, p, g)), pt::output("loss", value)};
};
constexpr auto traced = [] {
  return pt::trace(step, pt::input<parameters>("params"),
                   pt::input<float, batch, sequence, width>("x"),
                   pt::input<float, batch, sequence, width>("y"));
};

constexpr pt::mesh mesh{{"S", 4}};
constexpr auto SP = pt::manual("S", {{"x", 1}, {"y", 1}}, "SP");
constexpr auto ulysses = pt::manual("S", {{"rows", 1}, {"heads", 2}}, "Ulysses");
constexpr auto partitioned = [] {
  return pt::partition(traced(), mesh, pt::schedule(ulysses, SP));
};

// Three in front of attention and one behind, again in the derivative; gradients of the five
// parameters and the loss are summed over the sequence.
static_assert(pt::check<partitioned>.collectives ==
              pt::collectives{.all_reduce = 6, .all_to_all = 8});

}  // namespace

TEST_CASE("Ulysses attention: eight all-to-alls") {
  const models::source attention(traced(), [](std::string_view) { return 1; });
  CHECK(attention.emulated(mesh, ulysses, SP) == pt::collectives{.all_reduce = 6, .all_to_all = 8});
}
TEST_CASE("ring attention: keys and values go around, and their cotangents") {
  const models::source attention(traced(), [](std::string_view) { return 1; });
  const auto queries = pt::manual("S", {{"heads.0", 1}}, "queries");
  // Each device has its rows of queries, and needs all keys and values: gathered once, and
  // cotangents scattered.
  CHECK(attention.rewritten({.share_gathers = true}, mesh, queries, SP).collectives ==
        pt::collectives{.all_gather = 2, .all_reduce = 6, .reduce_scatter = 2});
  // Beside products, where links are slow, pieces go around a ring of four: keys and values forward
  // and for the derivative, and two cotangents.
  CHECK(attention.overlapped(data::slow_links(1e7), mesh, queries, SP).collectives ==
        pt::collectives{.all_reduce = 6, .permute = 6 * 3});
}
