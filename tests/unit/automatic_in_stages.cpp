// Searches inside pipelines: they see the whole pipeline, not one microbatch.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>

#include <doctest/doctest.h>

#include <partita/mpmd/pipeline_memory.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/pipeline_time.hpp>
#include <partita/partita.hpp>
#include <partita/search/automatic.hpp>

namespace pt = partita;

namespace {

struct wide_layer {
  using matrix = pt::tensor<float, 2048, 4096>;
  using back = pt::tensor<float, 4096, 2048>;
  BOOST_HANA_DEFINE_STRUCT(wide_layer, (matrix, up), (back, down));
};
constexpr auto wide_step = [](const auto& x, const auto& w) {
  const auto loss = [&](const auto& all) {
    auto h = x;
    for (std::size_t i = 0; i < all.size(); ++i)
      h = pt::named("layers", static_cast<std::int64_t>(i), [](const auto& a, const auto& m) {
        return a + matmul(tanh(matmul(a, m.up)), m.down);
      })(h, all[i]);
    return pt::named("loss", [](const auto& a) { return pt::sum(a * a); })(h);
  };
  const auto [value, g] = pt::value_and_grad(loss, w);
  return std::tuple{pt::output("w", pt::sgd(0.01, w, g)), pt::output("loss", value)};
};
pt::program wide_layers() {
  return pt::trace(wide_step, pt::input<float, 1024, 2048>("x"),
                   pt::input("w", std::array<wide_layer, 4>{}));
}
const pt::topology wide_meshes{{"m0", {{"B", 4}, {"M", 2}}}, {"m1", {{"B", 4}, {"M", 2}}}};

template <class... Tactics>
pt::pipelined wide_pipeline(std::int64_t microbatches, const Tactics&... tactics) {
  return pt::partition(
      wide_layers(), wide_meshes,
      pt::schedule(
          pt::pipeline({.stages = {{"layers.0", "layers.1"}, {"layers.2", "layers.3", "loss"}},
                        .batch = {{"x", 0}},
                        .microbatches = microbatches}),
          tactics...));
}
double seconds_of(const pt::pipelined& p) {
  return pt::simulate(p, pt::a100_80, {.overlap = true}).times.total;
}
double peak_of(const pt::pipelined& p) {
  const pt::pipeline_time t = pt::simulate(p, pt::a100_80, {.overlap = true});
  std::int64_t most = 0;
  for (const auto& m : pt::memory_of(p, t.times)) most = std::max(most, m.peak);
  return static_cast<double>(most);
}
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w.*.up", 1}, {"w.*.down", 0}}, "MP");
constexpr auto Z3 = pt::manual("B", {{"w", 0}}, "Z3");

/// A tactic that does nothing, so that stages stay unsharded.
struct unsharded {
  constexpr std::string_view name() const { return "unsharded"; }
  constexpr void apply(pt::tactic_context&) const {}
};
/// A tactic that records the running estimate of a search, for a comparison with the simulated
/// pipeline.
struct estimating {
  double* time;
  double* peak;
  constexpr std::string_view name() const { return "estimating"; }
  void apply(pt::tactic_context& c) const {
    const pt::staged_work work = c.staged->work();
    pt::running_cost cost(c.core(), pt::a100_80, {.overlap = true}, &work);
    cost.update();
    *time = cost.time();
    *peak = cost.peak_bytes();
  }
};

}  // namespace

TEST_CASE("a search inside stages has the cost of the simulated pipeline") {
  for (const int m : {1, 8}) {
    pt::search_result r;
    const pt::pipelined p = wide_pipeline(
        m,
        pt::automatic({"B", "M"}, pt::a100_80, {.evaluations = 500, .seconds = 0, .result = &r}));
    CHECK(r.after == doctest::Approx(seconds_of(p)));
    CHECK(r.peak_bytes == doctest::Approx(peak_of(p)));
    CHECK(r.before == doctest::Approx(seconds_of(wide_pipeline(m, unsharded()))));
    CHECK(r.bound <= r.after);
    CHECK(r.after <= 1.001 * seconds_of(wide_pipeline(m, BP)));
    CHECK(r.after <= 1.001 * seconds_of(wide_pipeline(m, BP, MP)));
    CHECK(r.after <= 1.001 * seconds_of(wide_pipeline(m, BP, Z3)));
    CHECK(r.after <= 1.001 * seconds_of(wide_pipeline(m, BP, MP, Z3)));
  }
}

TEST_CASE("a search inside stages stays within the memory of a mesh") {
  const double sharded = peak_of(wide_pipeline(8, BP, MP, Z3));
  pt::search_result r;
  const pt::pipelined p = wide_pipeline(
      8, BP,
      pt::automatic({"B", "M"}, pt::a100_80,
                    {.evaluations = 500, .seconds = 0, .memory = sharded, .result = &r}));
  CHECK(r.peak_bytes <= sharded);
  CHECK(peak_of(p) == doctest::Approx(r.peak_bytes));
}

TEST_CASE("the running estimate of a search follows the pipeline") {
  const auto check = [](const auto& p, const double& time, const double& peak) {
    CHECK(time > 0.9 * seconds_of(p));
    CHECK(time < 1.3 * seconds_of(p));
    CHECK(peak > 0.7 * peak_of(p));
    CHECK(peak < 1.3 * peak_of(p));
  };
  double time = 0, peak = 0;
  const estimating look{&time, &peak};
  for (const int m : {1, 4, 16}) {
    check(wide_pipeline(m, look), time, peak);
    check(wide_pipeline(m, BP, look), time, peak);
    check(wide_pipeline(m, BP, MP, look), time, peak);
    check(wide_pipeline(m, BP, MP, Z3, look), time, peak);
  }
}
