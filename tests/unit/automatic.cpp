/// Automatic tactics: what they find, beside what people write.
#include <doctest/doctest.h>

#include <string>

#include <partita/partita.hpp>
#include <partita/search/automatic.hpp>

#include "../../examples/models/transformer.hpp"

namespace pt = partita;
namespace tf = transformer;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

double step_time(const pt::partitioned& p, const pt::device& on) {
  return pt::simulate(p.device, on, {.overlap = true}).time;
}
pt::device with_memory(double bytes) {
  pt::device d = pt::a100_80;
  d.memory = bytes;
  return d;
}
std::string actions(const pt::partitioned& p) {
  return std::string(pt::print_actions(p.core, p.sharded()).view());
}

}  // namespace

TEST_CASE("a transformer's training step: no slower than what experts write") {
  const auto step = tf::trace_training_step<tf::dynamic>({2, 512, 8, 64, 2048, 1024, 256, 32});
  const auto made = [&](const auto&... tactics) {
    return pt::partition(step, mesh, pt::schedule(tactics...));
  };
  const auto expert = made(tf::BP, tf::MP), alone = made(pt::automatic({"B", "M"}, pt::a100_80));
  CHECK(step_time(alone, pt::a100_80) <= 1.001 * step_time(expert, pt::a100_80));
  // Layers are sharded alike.
  for (int i = 0; i < step.input_count(); ++i) {
    std::string name(step.input_name(i));
    const auto layer = name.find("layers.0");
    if (layer == std::string::npos) continue;
    const auto sharding = alone.input(name).sharding;
    name[layer + 7] = '1';
    CHECK(alone.input(name).sharding == sharding);
  }
  // It is a tactic like any other: behind a manual one, and before one.
  const auto mixed = made(tf::BP, pt::automatic({"M"}, pt::a100_80));
  CHECK(step_time(mixed, pt::a100_80) <= 1.001 * step_time(made(tf::BP), pt::a100_80));
  CHECK(mixed.tactics.size() == 2);
  CHECK(std::string(mixed.tactics[1].notes[0].view()).starts_with("automatic: "));
  // The same again, and from the log.
  CHECK(actions(made(tf::BP, pt::automatic({"M"}, pt::a100_80))) == actions(mixed));
  pt::core_program again(step, mesh);
  CHECK(!pt::replay(again, step, actions(alone)));
  // Too little memory for whole parameters: they are sharded, too.
  const auto batch = made(tf::BP);
  const double less = static_cast<double>(batch.cost.peak_bytes) * 0.9;
  const auto small = made(tf::BP, pt::automatic({"B"}, with_memory(less)));
  CHECK(static_cast<double>(small.cost.peak_bytes) <= less);
  // A step takes its state as it gave it.
  for (int i = 0; i < step.input_count(); ++i)
    for (int k = 0; k < step.output_count(); ++k)
      if (step.input_name(i) == step.output_name(k))
        CHECK(small.input(i).sharding == small.output(k).sharding);
}

TEST_CASE("where nothing helps nothing is done") {
  const auto f = pt::trace([](auto x) { return x * 2.f; }, pt::input<float, 3>("x"));
  const auto p = pt::partition(f, mesh, pt::schedule(pt::automatic({"B", "M"}, pt::a100_80)));
  CHECK(!p.input("x").sharding.count);
  CHECK(std::string(p.tactics[0].notes[0].view()) ==
        "automatic: 0 moves, 0 programs evaluated, 1000 per mille of the cost before");
}

TEST_CASE("bad searches") {
  const auto f = pt::trace([](auto x) { return x * 2.f; }, pt::input<float, 8>("x"));
  const auto run = [&](const auto& tactic) { pt::partition(f, mesh, pt::schedule(tactic)); };
  CHECK_THROWS_WITH(run(pt::automatic({"B"}, pt::a100_80, {.evaluations = 0})),
                    "S029 automatic: 1 axes and 0 evaluations; give 1 to 8 axes and at least one "
                    "evaluation");
  CHECK_THROWS_WITH_AS(run(pt::automatic({"Q"}, pt::a100_80)), doctest::Contains("S001"),
                       pt::error);
  CHECK_THROWS_WITH_AS(run(pt::automatic({"B"}, pt::device())), doctest::Contains("D001"),
                       pt::error);
}

namespace {
constexpr auto searched = [] {
  const auto f = pt::trace([](auto x, auto w) { return tanh(matmul(x, w)); },
                           pt::input<float, 4096, 64>("x"), pt::input<float, 64, 64>("w"));
  return pt::partition(f, pt::mesh{{"B", 4}},
                       pt::schedule(pt::automatic({"B"}, pt::a100_80, {.evaluations = 20})));
};
static_assert(pt::check<searched>.input("x").local_shape == pt::shape{1024, 64});
static_assert(pt::check<searched>.collectives.total() == 0);
}  // namespace
