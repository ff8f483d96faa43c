// Automatic stages: balanced by the time that the parts of a program take.
#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/pipeline_time.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

namespace {

/// Calls f(begins) for each way to divide parts into stages that are not empty.
template <class F>
constexpr void for_each_cut(int parts, int stages, const F& f) {
  pt::vec<int> begins(static_cast<std::size_t>(stages) + 1, parts);
  for (int s = 0; s < stages; ++s) begins[s] = s;
  while (true) {
    f(begins);
    int s = stages - 1;
    while (s > 0 && begins[s] == parts - (stages - s)) --s;
    if (s <= 0) return;
    for (int next = begins[s] + 1; s < stages; ++s) begins[s] = next++;
  }
}

/// Three parts in two stages: 3 | 1 1.
constexpr bool balances_at_compile_time() {
  constexpr double cost[] = {3, 1, 1};
  const auto begins = pt::balanced_stages(3, 2, [&](int, int begin, int end) {
    double sum = 0;
    for (int i = begin; i < end; ++i) sum += cost[i];
    return sum;
  });
  return begins[0] == 0 && begins[1] == 1 && begins[2] == 3;
}
static_assert(balances_at_compile_time());

constexpr int work_of_layers[] = {1, 4, 2, 1, 3, 1, 2};
constexpr int layer_count = 7;

/// A training step whose layers have different numbers of products. The optimizer is a named part
/// too; it begins with an op that needs no derivative.
constexpr auto unequal_step = [](const auto& x, const auto& w) {
  const auto loss = [&](const auto& v) {
    auto h = pt::named("embedding", [](const auto& a) { return a + a; })(x);
    for (int i = 0; i < layer_count; ++i)
      h = pt::named("layers", i, [&](auto y, const auto& weights) {
        for (int k = 0; k < work_of_layers[i]; ++k) y = tanh(matmul(y, weights));
        return y;
      })(h, v[static_cast<std::size_t>(i)]);
    return pt::named("head", [](const auto& y) { return sum(y * y); })(h);
  };
  const auto [value, g] = pt::value_and_grad(loss, w);
  auto next = w;
  for (std::size_t i = 0; i < w.size(); ++i)
    next[i] = pt::named("optimizer", [](const auto& a, const auto& b) { return a * 0.5f - b; })(
        w[i], g[i]);
  return std::tuple{pt::output("w", next), pt::output("loss", value)};
};
template <int Size>
constexpr pt::program unequal_layers() {
  return pt::trace(unequal_step, pt::input<float, 2 * Size, Size>("x"),
                   pt::input("w", std::array<pt::tensor<float, Size, Size>, layer_count>{}));
}
constexpr pt::topology equal_meshes{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}, {"m2", {{"B", 2}}}};

pt::pipelined in_stages(const pt::stage_list& stages, const pt::topology& t) {
  return pt::partition(
      unequal_layers<2048>(), t,
      pt::schedule(
          pt::pipeline(
              {.stages = stages, .batch = {{"x", 0}}, .microbatches = 4, .order = pt::gpipe}),
          pt::manual("B", {{"x", 0}}, "BP")));
}
/// Returns the time of a microbatch's forward and backward in the slowest stage.
double largest_stage(const pt::pipelined& p) {
  const pt::pipeline_time t = pt::simulate(p, pt::a100_80);
  std::vector<double> seconds(static_cast<std::size_t>(p.stages), 0);
  for (std::size_t u = 0; u < p.units.size(); ++u)
    if (p.units[u].inside && p.units[u].piece.stage >= 0)
      seconds[static_cast<std::size_t>(p.units[u].piece.stage)] += t.seconds[u];
  return *std::max_element(seconds.begin(), seconds.end());
}
const std::string names_of_layers[] = {"embedding", "layers.0", "layers.1", "layers.2", "layers.3",
                                       "layers.4",  "layers.5", "layers.6", "head"};
std::string found_note(const pt::pipelined& p) {
  return p.notes.empty() ? "" : std::string(p.notes.back().view());
}

}  // namespace

TEST_CASE("balanced_stages finds the minimum of all divisions, for any cost per part and mesh") {
  std::mt19937 random(7);
  const auto draw = [&](int most) { return static_cast<int>(random() % (most + 1u)); };
  for (int round = 0; round < 300; ++round) {
    const int parts = 1 + draw(8), stages = 1 + draw(parts - 1);
    std::vector<std::vector<int>> costs(static_cast<std::size_t>(stages));
    const bool alike = draw(1) == 0;
    for (auto& row : costs) {
      for (int i = 0; i < parts; ++i) row.push_back(draw(5));
      if (alike) row = costs[0];
    }
    const auto cost = [&](int stage, int begin, int end) {
      double sum = 0;
      for (int i = begin; i < end; ++i)
        sum += costs[static_cast<std::size_t>(stage)][static_cast<std::size_t>(i)];
      return sum;
    };
    const auto largest = [&](const pt::vec<int>& begins) {
      double most = 0;
      for (int s = 0; s < stages; ++s) most = std::max(most, cost(s, begins[s], begins[s + 1]));
      return most;
    };
    double best = 1e9;
    for_each_cut(parts, stages,
                 [&](const pt::vec<int>& begins) { best = std::min(best, largest(begins)); });
    const pt::vec<int> begins = pt::balanced_stages(parts, stages, cost);
    REQUIRE(begins.size() == static_cast<std::size_t>(stages) + 1);
    REQUIRE(begins[0] == 0);
    REQUIRE(begins[stages] == parts);
    for (int s = 0; s < stages; ++s) REQUIRE(begins[s] < begins[s + 1]);
    CHECK(largest(begins) == best);
  }
}

TEST_CASE("automatic stages are the best that can be written by hand") {
  const auto check = [](int count, const pt::topology& t, std::string_view note) {
    const pt::pipelined found = in_stages(pt::automatic_stages(count), t);
    CHECK(found.stages == count);
    CHECK(found_note(found) == "pipeline \"PP\": stages " + std::string(note) + " of the mean");
    double best = 1e9, fastest = 1e9;
    for_each_cut(9, count, [&](const pt::vec<int>& begins) {
      pt::stage_list stages;
      for (int s = 0; s < count; ++s) {
        for (int i = begins[s]; i < begins[s + 1]; ++i) stages.add(names_of_layers[i]);
        stages.end_stage();
      }
      const pt::pipelined p = in_stages(stages, t);
      best = std::min(best, largest_stage(p));
      fastest = std::min(fastest, pt::simulate(p, pt::a100_80).times.total);
    });
    CHECK(largest_stage(found) == doctest::Approx(best));
    CHECK(pt::simulate(found, pt::a100_80).times.total <= 1.02 * fastest);
  };
  check(3, equal_meshes,
        "{embedding, layers.0, layers.1} {layers.2, layers.3, layers.4} {layers.5, layers.6, "
        "head}; the largest takes 129 %");
  check(2, {{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}},
        "{embedding, layers.0, layers.1, layers.2} {layers.3, layers.4, layers.5, layers.6, head}; "
        "the largest takes 102 %");
  // Meshes with more devices, or faster ones, get more parts.
  check(2, {{"m0", {{"B", 2}}}, {"m1", {{"B", 8}}}},
        "{embedding, layers.0, layers.1} {layers.2, layers.3, layers.4, layers.5, layers.6, head}; "
        "the largest takes 103 %");
  check(2, {{"m0", {{"B", 2}}, pt::h100}, {"m1", {{"B", 2}}, pt::v100}},
        "{embedding, layers.0, layers.1, layers.2, layers.3, layers.4, layers.5, layers.6} {head}; "
        "the largest takes 195 %");
}

TEST_CASE("automatic stages: impossible requests are refused") {
  CHECK_THROWS_WITH(
      in_stages(pt::automatic_stages(10), equal_meshes),
      "O147 pipeline: 10 stages are requested from 9 named parts; known: embedding, layers.0, "
      "layers.1, layers.2, layers.3, layers.4, layers.5, layers.6 and 1 more");
  CHECK_THROWS_WITH(in_stages(pt::automatic_stages(0), equal_meshes),
                    "O138 pipeline \"PP\": it has no stages; name the parts of each");
  const auto plain = [](const auto& x, const auto& w) { return matmul(x, w); };
  CHECK_THROWS_WITH(
      pt::partition(
          pt::trace(plain, pt::input<float, 4, 4>("x"), pt::input<float, 4, 4>("w")), equal_meshes,
          pt::schedule(pt::pipeline({.stages = pt::automatic_stages(2), .batch = {{"x", 0}}}))),
      "O146 pipeline: 2 stages are requested, and the program has no named parts; write, in C++, "
      "pt::named(\"layers\", i, f)(x), in JAX with jax.named_scope(f\"layers_{i}\"), or name the "
      "parts of each stage");
}
