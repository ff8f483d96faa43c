// Pipelines by elements over their steps: what claims do not know is proved, and mistakes are not.
#include <doctest/doctest.h>

#include <tuple>

#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/partita.hpp>
#include <partita/run/refute_pipeline.hpp>

#include "../mutants/pipelines.hpp"

namespace pt = partita;

namespace {

constexpr std::int64_t most = 25'000'000;

bool by_steps(const pt::pipelined& p) {
  return pt::mpmd_detail::compare_steps(p.original, p, most).kind ==
         pt::prove_detail::element_verdict::proved;
}

constexpr auto layers = [](const auto& x, const auto& w1, const auto& w2) {
  const auto layer = [](const auto& h, const auto& w) { return tanh(matmul(h, w)); };
  const auto [loss, g] = pt::value_and_grad(
      [&](const auto& w) {
        const auto h = pt::named("first", layer)(x, w[0]);
        return sum(pt::named("second", layer)(h, w[1]));
      },
      std::array{w1, w2});
  return std::tuple{pt::output("w1", w1 - g[0]), pt::output("w2", w2 - g[1]),
                    pt::output("loss", loss)};
};
pt::pipelined small_pipeline() {
  return pt::partition(
      pt::trace(layers, pt::input<float, 4, 2>("x"), pt::input<float, 2, 2>("w1"),
                pt::input<float, 2, 2>("w2")),
      pt::topology{{"m0", {{"B", 2}, {"M", 2}}}, {"m1", {{"B", 2}, {"M", 1}}}},
      pt::schedule(pt::manual("B", {{"x", 0}}, "BP"),
                   pt::pipeline({.stages = {{"first"}, {"second"}},
                                 .batch = {{"x", 0}},
                                 .microbatches = 2,
                                 .order = pt::one_f_one_b}),
                   pt::manual("M", {{"w1", 1}}, "MP"), pt::manual("B", {{"w2", 0}}, "Z3")));
}

}  // namespace

TEST_CASE("steps: a training step is proved by elements alone") {
  CHECK(by_steps(small_pipeline()));
}

TEST_CASE("steps: a mutant that claims refuse or that computes something else is not proved") {
  const pt::pipelined right = small_pipeline();
  int changed = 0, proved = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    pt::pipelined p = right;
    if (mutants::mutate(p, seed) < 0) continue;
    ++changed;
    const bool is = pt::prove(p).proved;
    proved += is;
    CHECK_FALSE((is && pt::refute(p, {.seeds = 4}).refuted));
  }
  CHECK(changed > 100);
  CHECK(proved < changed);
}

TEST_CASE("steps: repeated rows of a microbatch are proved") {
  const auto model = [](const auto& g, const auto& x) {
    return pt::named("s1", [](const auto& a, const auto& b) {
      const auto c = expand_dims<1>(a);
      return reshape<4>(concatenate<1>(c, c)) * b;
    })(g, x);
  };
  for (const int microbatches : {1, 2}) {
    const pt::pipelined p =
        pt::partition(pt::trace(model, pt::input<float, 2>("g"), pt::input<float, 4>("x")),
                      pt::topology{{"m0", {{"B", 1}}}},
                      pt::schedule(pt::pipeline({.stages = {{"s1"}},
                                                 .batch = {{"x", 0}, {"g", 0}},
                                                 .microbatches = microbatches,
                                                 .order = pt::gpipe})));
    REQUIRE_MESSAGE(!p.error, data::str(p.error.message));
    const pt::verdict v = pt::prove(p);
    CHECK_MESSAGE(v.proved, data::str(v.error.message));
  }
}

TEST_CASE("steps: a value that skips a mesh, and a stage that subtracts a mean, are proved") {
  const auto model = [](const auto& x, const auto& w) {
    const auto [loss, g] = pt::value_and_grad(
        [&](const auto& w) {
          const auto h =
              pt::named("a", [](const auto& x, const auto& w) { return tanh(matmul(x, w)); })(x, w);
          const auto u =
              pt::named("b", [](const auto& h) { return h - expand_dims<1>(mean<1>(h)); })(h);
          return sum(pt::named("c", [](const auto& u, const auto& h) { return u * h; })(u, h));
        },
        w);
    return std::tuple{pt::output("w", w - g), pt::output("loss", loss)};
  };
  for (const int microbatches : {1, 2})
    for (const int axis : {0, 1}) {
      const pt::pipelined p = pt::partition(
          pt::trace(model, pt::input<float, 4, 4>("x"), pt::input<float, 4, 4>("w")),
          pt::topology{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}, {"m2", {{"B", 2}}}},
          pt::schedule(pt::pipeline({.stages = {{"a"}, {"b"}, {"c"}},
                                     .batch = {{"x", 0}},
                                     .microbatches = microbatches,
                                     .order = pt::one_f_one_b}),
                       axis == 0 ? pt::manual("B", {{"x", 0}}) : pt::manual("B", {{"w", 1}})));
      REQUIRE_MESSAGE(!p.error, data::str(p.error.message));
      const pt::verdict v = pt::prove(p);
      CHECK_MESSAGE(v.proved, data::str(v.error.message));
    }
}
namespace {

/// Rows that do not divide by the devices, in a loop of a stage: claims do not know their sum.
template <int Rows>
pt::pipelined padded_rows(int microbatches) {
  const auto model = [](const auto& x, const auto& w) {
    const auto h = pt::named("a", [](const auto& x, const auto& w) {
      return for_loop(
          0, 3, [&](const auto&, const auto& h) { return tanh(matmul(h, w)); }, x);
    })(x, w);
    return pt::named("b", [](const auto& h) { return sum(h); })(h);
  };
  return pt::partition(
      pt::trace(model, pt::input<float, Rows, 2>("x"), pt::input<float, 2, 2>("w")),
      pt::topology{{"m0", {{"B", 4}}}, {"m1", {{"B", 4}}}},
      pt::schedule(pt::pipeline({.stages = {{"a"}, {"b"}},
                                 .batch = {{"x", 0}},
                                 .microbatches = microbatches,
                                 .order = pt::gpipe}),
                   pt::manual("B", {{"x", 0}}, "rows", pt::uneven::pad)));
}

}  // namespace

TEST_CASE("steps: padded rows in a loop of a stage are proved") {
  for (const int microbatches : {1, 2}) {
    const pt::pipelined p = padded_rows<6>(microbatches);
    REQUIRE_MESSAGE(!p.error, data::str(p.error.message));
    const pt::verdict v = pt::prove(p);
    CHECK_MESSAGE(v.proved, data::str(v.error.message));
  }
}

TEST_CASE("steps: partition accepts a pipeline that is neither proved nor refuted") {
  const pt::pipelined p = padded_rows<29'998>(2);
  CHECK_MESSAGE(!p.error, data::str(p.error.message));
  CHECK(!p.proved);
  const pt::verdict v = pt::prove(p, {.most_elements = 500'000});
  CHECK((!v.proved && v.undecided));
}

TEST_CASE("steps: a pipeline that is too large is undecided, and nothing of its size is stored") {
  const auto model = [](const auto& x) {
    return pt::named("s1", [](const auto& a) { return tanh(a); })(x);
  };
  const pt::pipelined p = pt::partition(
      pt::trace(model, pt::input<float, 65536, 65536>("x")), pt::topology{{"m0", {{"B", 1}}}},
      pt::schedule(pt::pipeline(
          {.stages = {{"s1"}}, .batch = {{"x", 0}}, .microbatches = 2, .order = pt::gpipe})));
  REQUIRE_MESSAGE(!p.error, data::str(p.error.message));
  CHECK(pt::mpmd_detail::compare_steps(p.original, p, most).kind ==
        pt::prove_detail::element_verdict::too_large);
}
