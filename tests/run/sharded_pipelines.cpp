// Pipelines whose stages are sharded compute what the unpartitioned step computes.
#include <array>
#include <cmath>
#include <tuple>

#include <doctest/doctest.h>

#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/run/pipeline.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;
namespace {

/// A small transformer: embedding and head are one table, dropout behind each layer, the gradient
/// is clipped by its norm over all parameters.
struct tied_layer {
  using matrix = pt::tensor<float, 8, 16>;
  using back = pt::tensor<float, 16, 8>;
  using vector = pt::tensor<float, 8>;
  using heads = pt::tensor<float, 8, 3, 2, 4>;
  using joined = pt::tensor<float, 2, 4, 8>;
  BOOST_HANA_DEFINE_STRUCT(tied_layer, (vector, scale), (vector, bias), (heads, qkv), (joined, out),
                           (matrix, up), (back, down));
};
struct tied_params {
  using table = pt::tensor<float, 12, 8>;
  using layer_list = std::array<tied_layer, 4>;
  BOOST_HANA_DEFINE_STRUCT(tied_params, (table, embedding), (layer_list, layers));
};

constexpr auto tied_loss = [](const auto& p, const auto& tokens, const auto& targets,
                              const auto& key) {
  auto x = pt::named("embedding", [](const auto& table, const auto& t) {
    return gather(table, t);
  })(p.embedding, tokens);
  for (std::size_t i = 0; i < p.layers.size(); ++i)
    x = pt::named("layers", static_cast<std::int64_t>(i), [&](const auto& l, const auto& h) {
      const auto a = pt::nn::layer_norm(h, l.scale, l.bias);
      const auto b = h + pt::nn::causal_self_attention(a, l.qkv, l.out);
      const auto c = b + matmul(pt::nn::gelu(matmul(b, l.up)), l.down);
      return pt::nn::dropout(c, pt::fold_in(key, static_cast<std::int64_t>(i)), 0.1);
    })(p.layers[i], x);
  return pt::named("head", [&](const auto& table, const auto& h) {
    return pt::nn::cross_entropy(matmul(h, pt::transpose<1, 0>(table)), targets);
  })(p.embedding, x);
};
constexpr auto tied_step = [](const auto& p, const auto& state, const auto& tokens,
                              const auto& targets, const auto& key) {
  const auto [loss, g] =
      pt::value_and_grad([&](const auto& q) { return tied_loss(q, tokens, targets, key); }, p);
  const auto [clipped, norm] = pt::clip_by_global_norm(g, 0.5);
  const auto [next, next_state] = pt::adam(pt::adam_options{}, p, clipped, state);
  return std::tuple{pt::output("params", next), pt::output("state", next_state),
                    pt::output("loss", loss), pt::output("norm", norm)};
};
pt::program tied_training() {
  const tied_params p;
  return pt::trace(tied_step, pt::input("params", p), pt::input("state", pt::adam_state_for(p)),
                   pt::input<std::int32_t, 16, 6>("tokens"),
                   pt::input<std::int32_t, 16, 6>("targets"), pt::input<std::int64_t>("key"));
}
std::vector<pt::array> tied_arguments(const pt::program& f) {
  data::random r{5};
  std::vector<pt::array> out;
  for (int i = 0; i < f.input_count(); ++i) {
    const pt::tensor_type& t = f.input_type(i);
    if (pt::is_floating(t.element)) {
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

constexpr std::string_view mesh_names[] = {"m0", "m1", "m2", "m3"};
/// The model in two or four stages, which lie on the meshes as an order has them.
pt::assignment stages(int count, const pt::pipeline_order& order, int meshes) {
  constexpr std::string_view parts[] = {"embedding", "layers.0", "layers.1",
                                        "layers.2",  "layers.3", "head"};
  constexpr int of_two[] = {0, 0, 0, 1, 1, 1}, of_four[] = {0, 0, 1, 2, 3, 3};
  pt::assignment where;
  for (int i = 0; i < 6; ++i) {
    const int stage = count == 2 ? of_two[i] : of_four[i];
    where.names.push_back({parts[i], mesh_names[order.mesh_of(stage, {meshes, count, 1})], stage});
  }
  return where;
}
}  // namespace
constexpr auto BP = pt::manual("B", {{"tokens", 0}, {"targets", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"params.layers.*.qkv", 2}, {"params.layers.*.up", 1}}, "MP");
constexpr auto MU = pt::manual("M", {{"params.layers.*.up", 1}}, "MP");
constexpr auto Z3 = pt::manual("B", {{"params", pt::first_divisible_dim}, {"state", pt::first_divisible_dim}}, "Z3");

TEST_CASE("sharded") {
  const pt::program f = tied_training();
  const auto x = tied_arguments(f);
  const pt::results expected = pt::evaluate(f, x);
  const auto check = [&](const auto& schedule, const pt::topology& t, int stage_count, int micro) {
        const pt::pipelined p = pt::pipeline(f, t, pt::one_f_one_b,
                                             {.where = stages(stage_count, pt::one_f_one_b, t.count()),
                                              .microbatches = micro,
                                              .batch = {{"tokens", 0}, {"targets", 0}}}, schedule);
        for (const auto& r : p.tactics) MESSAGE(str(pt::concat(r.name, ": ", r.counts, " conflicts ", r.conflicts)));
        for (const auto& u : p.units) { CHECK(!pt::verify(u.device)); if (u.counts.total() > 0) MESSAGE(str(pt::concat(p.topology.name(u.piece.mesh), " stage ", u.piece.stage, " t", u.transposed, " inside ", static_cast<int>(u.inside), " ", u.counts)));}
        const pt::results got = pt::emulate(p, x);
        for (int i = 0; i < got.size(); ++i) {
          CAPTURE(got.names()[static_cast<std::size_t>(i)]);
          CHECK(pt::all_close(got[i], expected[i], 1e-4, 1e-5));
        }
        CHECK(pt::equal(got, pt::emulate(p, pt::mesh_mode::threads, x)));
  };
  const pt::topology same{{"m0", {{"B", 2}, {"M", 2}}}, {"m1", {{"B", 2}, {"M", 2}}}};
  check(pt::schedule(BP), same, 2, 4);
  check(pt::schedule(BP, MP), same, 2, 4);
  check(pt::schedule(BP, MP, Z3), same, 2, 4);
  const pt::topology other{{"m0", {{"B", 4}, {"M", 2}}}, {"m1", {{"M", 2}, {"B", 2}}}};
  check(pt::schedule(BP, MP, Z3), other, 2, 4);
  const pt::topology lacks{{"m0", {{"B", 4}}}, {"m1", {{"M", 4}, {"B", 2}}}};
  check(pt::schedule(BP, MU, Z3), lacks, 2, 4);
}
