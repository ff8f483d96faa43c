// Pipelines compute the results of the unpartitioned step.
#include <array>
#include <cmath>
#include <tuple>

#include <doctest/doctest.h>

#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/merge.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/mpmd/pipeline_figures.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/mpmd/remat.hpp>
#include <partita/report/pipeline_explain.hpp>
#include <partita/run/pipeline.hpp>

#include "../data.hpp"
#include "../random_table.hpp"
#include "../tied_training.hpp"

namespace pt = partita;
using data::str;
using namespace tied;

TEST_CASE("a transformer with tied embedding, clipping and dropout, under every order") {
  const pt::program f = tied_training();
  REQUIRE(!f.error);
  const auto x = tied_arguments(f);
  const pt::results expected = pt::evaluate(f, x);
  struct shape {
    int meshes, stages;
  };
  for (const shape s : {shape{2, 2}, shape{4, 4}, shape{2, 4}})
    for (const int microbatches : {4, 8})
      for (const auto* order :
           {&pt::gpipe, &pt::gpipe_reversed, &pt::gpipe_1f1b_last, &pt::one_f_one_b, &pt::circular,
            &pt::circular_phases, &pt::interleaved_1f1b, &pt::zb_h1, &pt::zb_h2, &pt::zb_v}) {
        pt::failure unfit;
        order->fits({s.meshes, s.stages, microbatches}, unfit);
        if (unfit) continue;
        CAPTURE(s.meshes);
        CAPTURE(s.stages);
        CAPTURE(microbatches);
        CAPTURE(std::string(order->name));
        // All forward calls before all backward calls: their results wait in the channels.
        const bool ahead = order == &pt::gpipe_1f1b_last || s.stages > s.meshes;
        const pt::pipelined p = pt::pipeline(f, topology_of(s.meshes), *order,
                                             {.where = stages(s.stages, *order, s.meshes),
                                              .microbatches = microbatches,
                                              .batch = {{"tokens", 0}, {"targets", 0}},
                                              .channels = {.capacity = ahead ? 16 : 1}});
        CHECK(str(pt::prove(f, p).error.message) == "");
        const pt::results got = pt::emulate(p, x);
        for (int i = 0; i < got.size(); ++i) {
          CAPTURE(got.names()[static_cast<std::size_t>(i)]);
          CHECK(pt::all_close(got[i], expected[i], 1e-4, 1e-5));
        }
        CHECK(pt::equal(got, pt::emulate(p, pt::mesh_mode::threads, x)));
      }
}

TEST_CASE("evaluation has only forward calls, under every order") {
  const pt::program f = pt::trace(
      [](const auto& p, const auto& tokens, const auto& targets, const auto& key) {
        return pt::output("loss", tied_loss(p, tokens, targets, key));
      },
      pt::input("params", tied_params()), pt::input<std::int32_t, 16, 6>("tokens"),
      pt::input<std::int32_t, 16, 6>("targets"), pt::input<std::int64_t>("key"));
  const auto x = tied_arguments(f);
  const pt::results expected = pt::evaluate(f, x);
  for (const int meshes : {2, 4})
    for (const auto* order :
         {&pt::gpipe, &pt::gpipe_reversed, &pt::gpipe_1f1b_last, &pt::one_f_one_b, &pt::circular,
          &pt::circular_phases, &pt::interleaved_1f1b, &pt::zb_h1, &pt::zb_h2, &pt::zb_v}) {
      pt::failure unfit;
      order->fits({meshes, 4, 8}, unfit);
      if (unfit) continue;
      CAPTURE(meshes);
      CAPTURE(std::string(order->name));
      const pt::pipelined p = pt::pipeline(f, topology_of(meshes), *order,
                                           {.where = stages(4, *order, meshes),
                                            .microbatches = 8,
                                            .batch = {{"tokens", 0}, {"targets", 0}},
                                            .channels = {.capacity = 16}});
      CHECK(str(pt::prove(f, p).error.message) == "");
      CHECK(pt::all_close(pt::emulate(p, x)[0], expected[0], 1e-5, 1e-6));
      CHECK(pt::equal(pt::emulate(p, x), pt::emulate(p, pt::mesh_mode::threads, x)));
    }
}

TEST_CASE("the transformer under random orders") {
  const pt::program f = tied_training();
  REQUIRE(!f.error);
  const auto x = tied_arguments(f);
  const pt::results expected = pt::evaluate(f, x);
  data::random random{11};
  int ran = 0;
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    pt::pipeline_options options{.where = stages(round % 2 == 0 ? 2 : 4, pt::gpipe, 2),
                                 .microbatches = 4,
                                 .batch = {{"tokens", 0}, {"targets", 0}},
                                 .split = round % 3 == 0,
                                 .channels = {.capacity = pt::unbounded}};
    const pt::order_table table =
        random_table(pt::pipeline(f, topology_of(2), pt::gpipe, options).calls, random);
    options.channels.capacity = static_cast<int>(random.in(1, 4));
    pt::pipelined p;
    try {
      p = pt::pipeline(f, topology_of(2), table, options);
    } catch (const pt::error& e) {
      CHECK(e.code() == "O007");
      continue;
    }
    ++ran;
    CHECK(str(pt::prove(f, p).error.message) == "");
    const pt::results got = pt::emulate(p, x);
    for (int i = 0; i < got.size(); ++i) {
      CAPTURE(got.names()[static_cast<std::size_t>(i)]);
      CHECK(pt::all_close(got[i], expected[i], 1e-4, 1e-5));
    }
    CHECK(pt::equal(got, pt::emulate(p, pt::mesh_mode::threads, x)));
  }
  CHECK(ran >= 4);
}

// ---- Sharded stages -----------------------------------------------------------------------------

namespace {

constexpr auto BP = pt::manual("B", {{"tokens", 0}, {"targets", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"params.layers.*.qkv", 2}, {"params.layers.*.up", 1}}, "MP");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"state", pt::first_divisible_dim}}, "Z3");

constexpr auto pipeline_of_two(const pt::pipeline_order& order, std::int64_t microbatches,
                               bool keep_gathered = false) {
  return pt::pipeline(
      {.stages = {{"embedding", "layers.0", "layers.1"}, {"layers.2", "layers.3", "head"}},
       .batch = {{"tokens", 0}, {"targets", 0}},
       .microbatches = microbatches,
       .order = order,
       .channels = {.capacity = 16},
       .keep_gathered = keep_gathered},
      "PP");
}
constexpr auto pipeline_of_four(const pt::pipeline_order& order, std::int64_t microbatches) {
  return pt::pipeline(
      {.stages = {{"embedding", "layers.0"}, {"layers.1"}, {"layers.2"}, {"layers.3", "head"}},
       .batch = {{"tokens", 0}, {"targets", 0}},
       .microbatches = microbatches,
       .order = order,
       .channels = {.capacity = 16}},
      "PP");
}

/// The step on one device, and its results.
struct tied_reference {
  pt::program f = tied_training();
  std::vector<pt::array> x = tied_arguments(f);
  pt::results expected = pt::evaluate(f, x);

  pt::pipelined check(const pt::topology& t, const auto& schedule,
                      const pt::partition_options& more = {}) const {
    pt::pipelined p = pt::partition(f, t, schedule, more);
    for (const auto& u : p.units) CHECK(str(pt::verify(u.device).message) == "");
    CHECK(str(pt::prove(p).error.message) == "");
    const pt::results got = pt::emulate(p, x);
    for (int i = 0; i < got.size(); ++i) {
      CAPTURE(got.names()[static_cast<std::size_t>(i)]);
      CHECK(pt::all_close(got[i], expected[i], 1e-4, 1e-5));
    }
    CHECK(pt::equal(got, pt::emulate(p, pt::mesh_mode::threads, x)));
    return p;
  }
};

bool union_has(const pt::topology& t, std::string_view axis) {
  for (int m = 0; m < t.count(); ++m)
    if (t.mesh_of(m).find(axis) >= 0) return true;
  return false;
}
pt::topology meshes_of(int count, const pt::mesh& even, const pt::mesh& odd) {
  pt::topology t;
  for (int i = 0; i < count; ++i) t.push_back({mesh_names[i], i % 2 == 0 ? even : odd});
  return t;
}

}  // namespace

TEST_CASE("batch, Megatron and fully sharded parallelism inside the stages, under every order") {
  const tied_reference tied;
  const pt::topology same = meshes_of(2, {{"B", 2}, {"M", 2}}, {{"B", 2}, {"M", 2}});
  for (const auto* order :
       {&pt::gpipe, &pt::gpipe_1f1b_last, &pt::one_f_one_b, &pt::zb_h1, &pt::zb_h2, &pt::zb_v}) {
    CAPTURE(std::string(order->name));
    const bool around = order == &pt::zb_v;
    const int stages = around ? 4 : 2;
    CAPTURE(stages);
    for (const int microbatches : {4, 8}) {
      if (around)
        tied.check(same, pt::schedule(BP, pipeline_of_four(*order, microbatches), MP, Z3));
      else
        tied.check(same, pt::schedule(BP, pipeline_of_two(*order, microbatches), MP, Z3));
    }
  }
  const pt::topology four = meshes_of(4, {{"B", 2}, {"M", 2}}, {{"B", 2}, {"M", 2}});
  for (const auto* order : {&pt::gpipe_reversed, &pt::one_f_one_b, &pt::zb_h1})
    tied.check(four, pt::schedule(pipeline_of_four(*order, 4), BP, MP, Z3));
  for (const auto* order : {&pt::circular, &pt::circular_phases, &pt::interleaved_1f1b})
    tied.check(same, pt::schedule(BP, MP, Z3, pipeline_of_four(*order, 4)));
}

TEST_CASE("stages on meshes of different sizes, axes and orders of axes") {
  const tied_reference tied;
  const auto two = [](int microbatches) { return pipeline_of_two(pt::one_f_one_b, microbatches); };
  const pt::mesh large{{"B", 4}, {"M", 2}}, small{{"M", 2}, {"B", 2}}, narrow{{"B", 2}};
  const pt::mesh one{{"M", 1}};
  for (const int microbatches :
       {4, 8})  // of 4 and of 2 examples, which "B" of size 4 does not divide
    for (const auto& t :
         {meshes_of(2, large, small), meshes_of(2, small, large), meshes_of(2, large, large),
          meshes_of(2, narrow, large), meshes_of(2, large, one), meshes_of(2, one, narrow)}) {
      CAPTURE(str(pt::concat(t)));
      tied.check(t, pt::schedule(two(microbatches), BP));
      tied.check(t, pt::schedule(two(microbatches), BP, Z3));
      if (union_has(t, "M")) tied.check(t, pt::schedule(two(microbatches), BP, MP, Z3));
    }
}

TEST_CASE("collectives inside stages are those of the closed forms") {
  const tied_reference tied;
  const pt::topology t = meshes_of(2, {{"B", 2}, {"M", 2}}, {{"B", 2}, {"M", 2}});
  const auto PP = pipeline_of_two(pt::one_f_one_b, 4);
  // Gradients are summed over "B" once per step: 24 of layers, that of the table on both meshes,
  // and the loss.
  const pt::pipelined batch = tied.check(t, pt::schedule(PP, BP));
  CHECK(batch.collectives == pt::collectives{.all_reduce = 24 + 2 + 1});
  // Each layer: two sums of activations forward and two backward, for each of 4 microbatches. The
  // norms of the two sharded halves of the parameters are summed over "M", two matrices each.
  const pt::pipelined megatron = tied.check(t, pt::schedule(PP, BP, MP));
  CHECK(megatron.collectives == pt::collectives{.all_reduce = 27 + 4 * 4 * 4 + 4 * 4});
  CHECK(batch.tactics.size() == 2);
  CHECK(megatron.tactics[1].counts == batch.collectives);
  // Passes and overlap rewrite each unit: gradients are summed together on each mesh.
  CHECK(pt::pipeline_figures(batch).launched == 3);
  const pt::pipelined apart = tied.check(t, pt::schedule(PP, BP), {.passes = {.combine_below = 0}});
  CHECK(apart.collectives == batch.collectives);
  CHECK(pt::pipeline_figures(apart).launched == 27);
  CHECK(pt::rematerialized(batch, {0}).collectives == batch.collectives);
  const pt::partition_options rings{.overlap = data::slow_links(1e7)};
  // (Elements alone know rings, up to their limit: such a pipeline is undecided.)
  CHECK(pt::partition(tied.f, t, pt::schedule(PP, BP, Z3), rings).collectives.permute > 0);
}

TEST_CASE("fully sharded parameters are gathered once per microbatch, or once in all") {
  const tied_reference tied;
  const auto of_stages = [&](const pt::topology& t, bool keep, int microbatches) {
    return tied.check(
        t, pt::schedule(pipeline_of_two(pt::one_f_one_b, microbatches, keep), BP, MP, Z3));
  };
  const pt::topology same = meshes_of(2, {{"B", 2}, {"M", 2}}, {{"B", 2}, {"M", 2}});
  const pt::pipelined four = of_stages(same, false, 4), four_kept = of_stages(same, true, 4),
                      eight = of_stages(same, false, 8), eight_kept = of_stages(same, true, 8);
  // Each of 4 layers has 6 parameters; both meshes have the table.
  CHECK(eight.collectives.all_gather > four.collectives.all_gather);
  CHECK(four_kept.collectives.all_gather == eight_kept.collectives.all_gather);
  CHECK(four_kept.collectives.all_gather == 4 * 6 + 2);
  CHECK(pt::memory_of(eight_kept)[0].peak > pt::memory_of(eight)[0].peak);
  // A value that is combined inside calls stays so.
  CHECK(four_kept.collectives.all_reduce == four.collectives.all_reduce);
  // A value in the needed layout is not kept.
  const pt::pipelined batch =
      tied.check(same, pt::schedule(BP, pipeline_of_two(pt::one_f_one_b, 4, true)));
  CHECK(batch.units.size() ==
        pt::partition(tied.f, same, pt::schedule(BP, pipeline_of_two(pt::one_f_one_b, 4)))
            .units.size());
  const pt::pipelined changed =
      pt::rematerialized(pt::merged(batch, {{{"head"}, {"head", 1}}}), {0});
  CHECK(str(pt::prove(changed).error.message) == "");
  CHECK(pt::equal(pt::emulate(changed, tied.x), pt::emulate(batch, tied.x)));
  of_stages(meshes_of(2, {{"B", 4}, {"M", 2}}, {{"M", 2}, {"B", 2}}), true, 4);
  of_stages(meshes_of(2, {{"B", 2}}, {{"B", 4}, {"M", 2}}), true, 8);
}

TEST_CASE("a merged last stage and rematerialized forwards give the same bits") {
  const tied_reference tied;
  const auto check = [&](const pt::pipelined& p) {
    const pt::pipelined q = pt::merged(p, {{{"head"}, {"head", 1}}});
    CHECK(q.units.size() < p.units.size());
    for (const auto& u : q.units) CHECK(str(pt::verify(u.device).message) == "");
    const pt::results expected = pt::emulate(p, tied.x);
    const auto pairs = [](const pt::fragment_call& a, const pt::fragment_call& b) {
      return a.transposed == b.transposed && a.part == b.part &&
             a.microbatch / 2 == b.microbatch / 2;
    };
    const pt::pipelined two = pt::merged(p, pairs),
                        some = pt::merged(pt::rematerialized(q, {0}), pairs);
    CHECK(two.joint_functions.size() > 0);
    CHECK(two.collectives == p.collectives);
    for (const auto& each : {q, pt::rematerialized(p), pt::rematerialized(q, {0}), two, some}) {
      CHECK(str(pt::prove(each).error.message) == "");
      CHECK(pt::equal(pt::emulate(each, tied.x), expected));
    }
  };
  for (const auto* order : {&pt::one_f_one_b, &pt::zb_h1})
    check(pt::pipeline(tied.f, topology_of(2), *order,
                       {.where = stages(2, *order, 2),
                        .microbatches = 4,
                        .batch = {{"tokens", 0}, {"targets", 0}}}));
  for (const bool keep : {false, true})
    check(pt::partition(tied.f, meshes_of(2, {{"B", 4}, {"M", 2}}, {{"M", 2}, {"B", 2}}),
                        pt::schedule(pipeline_of_two(pt::one_f_one_b, 4, keep), BP, MP, Z3)));
}

TEST_CASE("merging and rematerialization can be parts of the tactic") {
  const tied_reference tied;
  const auto in_four = [&](const pt::topology& t, bool merge_last, bool remat) {
    return tied.check(t, pt::schedule(pt::pipeline({.stages = {{"embedding", "layers.0"},
                                                               {"layers.1"},
                                                               {"layers.2"},
                                                               {"layers.3", "head"}},
                                                    .batch = {{"tokens", 0}, {"targets", 0}},
                                                    .microbatches = 8,
                                                    .merge_last = merge_last,
                                                    .remat = remat},
                                                   "PP"),
                                      BP));
  };
  const pt::mesh four{{"B", 2}};
  pt::topology t = meshes_of(4, four, four);
  const pt::pipelined plain = in_four(t, false, false), less = in_four(t, true, true);
  CHECK(str(in_four(t, true, false).order_of("m3")) == "FB0 FB1 FB2 FB3 FB4 FB5 FB6 FB7");
  CHECK(str(less.order_of("m0")) == str(plain.order_of("m0")));
  const auto before = pt::memory_of(plain), after = pt::memory_of(less);
  CHECK(after[0].peak < before[0].peak);
  // A limit that only stages with rematerialization keep.
  pt::device small = pt::a100_80;
  small.memory = static_cast<double>((before[0].peak + after[0].peak) / 2);
  pt::topology limited{{"m0", four, small}};
  for (const char* name : {"m1", "m2", "m3"}) limited.push_back({name, four});
  CHECK_THROWS_WITH_AS(in_four(limited, true, false), doctest::Contains("O134"), pt::error);
  CHECK(!in_four(limited, true, true).error);
}

TEST_CASE("a value that all its users slice is sliced before it is sent") {
  // "h" is replicated on m0; m1 needs rows of it, or both rows of it and all of it.
  const auto in_two = [](bool whole_too) {
    const auto loss = [=](auto w1, auto w2, auto x) {
      const auto h = pt::named(
          "first", [](auto a, auto w) { return pt::tag("h", tanh(matmul(a, w))); })(x, w1);
      return pt::named("second", [=](auto a, auto w) {
        const auto z = pt::tag("z", a * 2.0f);
        const auto y = matmul(z, w);
        return pt::sum(y * y) + pt::sum(pt::tag("all", exp(whole_too ? a : z)));
      })(h, w2);
    };
    const auto step = [=](auto w1, auto w2, auto x) {
      const auto [value, g] = pt::value_and_grad([=](const auto& w) { return loss(w[0], w[1], x); },
                                                 std::array{w1, w2});
      return std::tuple{pt::output("w1", w1 - g[0]), pt::output("w2", w2 - g[1]),
                        pt::output("loss", value)};
    };
    return pt::trace(step, pt::input<float, 8, 8>("w1"), pt::input<float, 8, 8>("w2"),
                     pt::input<float, 16, 8>("x"));
  };
  for (const bool whole_too : {false, true}) {
    CAPTURE(whole_too);
    const pt::program f = in_two(whole_too);
    const pt::pipelined p = pt::partition(
        f, meshes_of(2, {{"B", 4}}, {{"B", 4}}),
        pt::schedule(
            pt::pipeline(
                {.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}, .microbatches = 2}, "PP"),
            pt::manual("B", {{"h", pt::replicated}, {"all", pt::replicated}, {"z", 0}}, "BP")));
    REQUIRE(str(p.error.message) == "");
    CHECK(str(pt::prove(p).error.message) == "");
    bool sent = false;
    for (std::size_t t = 0; t < p.transfers.size(); ++t) {
      if (p.source.type(p.transfers[t].value).shape != pt::shape{8, 8} || p.transfers[t].to != 1)
        continue;
      sent = true;
      CHECK(p.sent_as[t].from.pieces(p.meshes[0], 0) == (whole_too ? 1 : 4));
    }
    CHECK(sent);
    const std::vector<pt::array> x = data::arguments(f);
    const pt::results got = pt::emulate(p, x), expected = pt::evaluate(f, x);
    for (int i = 0; i < got.size(); ++i) CHECK(pt::all_close(got[i], expected[i], 1e-4, 1e-5));
  }
}

TEST_CASE("a value that all its users gather is gathered on the cheaper side") {
  // m0 computes columns of "h"; `users` products on m1 need all of it.
  const auto in_two = [](int users) {
    const auto loss = [=](auto w1, auto w2, auto x) {
      const auto h = pt::named("first", [](auto a, auto w) { return tanh(matmul(a, w)); })(x, w1);
      return pt::named("second", [=](auto a, auto w) {
        auto sum = pt::sum(tanh(matmul(a, w[0])));
        for (int i = 1; i < users; ++i)
          sum = sum + pt::sum(tanh(matmul(a, w[static_cast<std::size_t>(i)])));
        return sum;
      })(h, w2);
    };
    const std::array<pt::tensor<float, 8, 8>, 3> weights{};
    return pt::trace(loss, pt::input<float, 8, 8>("w1"), pt::input("w2", weights),
                     pt::input<float, 16, 8>("x"));
  };
  const auto planned = [&](int users, const pt::topology& t, const pt::passes& on) {
    return pt::partition(
        in_two(users), t,
        pt::schedule(
            pt::pipeline(
                {.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}, .microbatches = 2}, "PP"),
            pt::manual("M", {{"w2", 1}}, "columns"), pt::manual("M", {{"w1", 1}}, "made")),
        {.passes = on});
  };
  // Checks the gathers on the meshes, and the bytes of the blocks of h. (`before`: gathered on m0.)
  const auto check = [&](const pt::pipelined& p, bool before, std::int64_t gathers) {
    REQUIRE(str(p.error.message) == "");
    CHECK(str(pt::prove(p).error.message) == "");
    REQUIRE(p.transfers.size() == 1);
    CHECK(p.sent_as[0].from.count == (before ? 0 : 1));
    const pt::pipeline_figures all(p);
    CHECK(all.meshes[before ? 0 : 1].collectives.all_gather == gathers);
    CHECK(all.meshes[before ? 1 : 0].collectives.all_gather == 0);
    const std::vector<pt::array> x = data::arguments(p.original);
    CHECK(pt::all_close(pt::emulate(p, x), pt::evaluate(p.original, x)));
  };
  const pt::mesh two{{"M", 2}}, four{{"M", 4}};
  const pt::passes each{.share_gathers = false};
  // Bytes of one microbatch of 256 bytes: 128 + 256 if gathered before; 128, and 128 per user, if
  // gathered after.
  check(planned(1, {{"m0", two}, {"m1", two}}, each), false, 2);
  check(planned(2, {{"m0", two}, {"m1", two}}, each), false, 4);
  check(planned(3, {{"m0", two}, {"m1", two}}, each), true, 2);
  check(planned(2, {{"m0", two}, {"m1", two}}, {}), false, 2);  // the products share one
  // Blocks of four devices take more gathering: 128, and 192 per user.
  check(planned(2, {{"m0", two}, {"m1", four}}, each), true, 2);
  // Between distant meshes the bytes sent decide: gathers within nodes cost little but their
  // latency.
  pt::device d = pt::h100;
  check(planned(3, {{"m0", two, d}, {"m1", two, d}}, each), true, 2);
  d.near.latency = 0;
  check(planned(3, {{"m0", two, d}, {"m1", two, d}}, each), false, 6);
  const pt::pipelined p = planned(3, {{"m0", two}, {"m1", two}}, each);
  CHECK(str(pt::explain(p)).find("computes it, and its receivers need it in another layout") !=
        std::string::npos);
}

TEST_CASE("weights in branches of a stage") {
  const auto step = [](const auto& x, const auto& which, const auto& w) {
    const auto [loss, g] = pt::value_and_grad(
        [&](const auto& v) {
          const auto h = pt::named(
              "first", [](const auto& a, const auto& b) { return matmul(a, b); })(x, v[0]);
          const auto y = pt::named("second", [&](const auto& a, const auto& b) {
            const auto once = [](const auto& c, const auto& m) { return matmul(c, m); };
            const auto none = [](const auto& c, const auto&) { return c + c; };
            return pt::cond(which, once, none, a, b);
          })(h, v[1]);
          return sum(y);
        },
        w);
    return std::tuple{pt::output("w", pt::sgd(1, w, g)), pt::output("loss", loss)};
  };
  const pt::program f =
      pt::trace(step, pt::input<float, 16, 4>("x"), pt::input<bool>("which"),
                pt::input("w", std::array{pt::tensor<float, 4, 4>{}, pt::tensor<float, 4, 4>{}}));
  const pt::topology t{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}};
  const auto PP =
      pt::pipeline({.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}, .microbatches = 4});
  const auto batch = pt::manual("B", {{"x", 0}}), weights = pt::manual("B", {{"w", 0}});
  for (const bool which : {false, true}) {
    CAPTURE(which);
    data::random r{9};
    std::vector<pt::array> x;
    for (int i = 0; i < f.input_count(); ++i)
      x.push_back(i == 1 ? data::fill(f.input_type(i), [&](std::int64_t) { return which; })
                         : data::integers(f.input_type(i), r, -3, 3));
    const pt::results expected = pt::evaluate(f, x);
    const auto check = [&](const pt::pipelined& p) {
      CHECK(str(pt::prove(p).error.message) == "");
      CHECK(pt::equal(pt::emulate(p, x), expected));
    };
    check(pt::partition(f, t, pt::schedule(PP)));
    check(pt::partition(f, t, pt::schedule(PP, batch)));
    check(pt::partition(f, t, pt::schedule(PP, batch, weights)));
  }
}
