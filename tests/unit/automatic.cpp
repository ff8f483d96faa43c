/// Automatic tactics: what they find, compared with what people write.
#include <doctest/doctest.h>

#include <string>

#include <partita/partita.hpp>
#include <partita/search/automatic.hpp>
#include <partita/spec/schedule.hpp>

#include "../../examples/models/transformer.hpp"

namespace pt = partita;
namespace tf = transformer;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr pt::search_options few{.evaluations = 1000};

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

/// Slicing two inputs together costs least, slicing one of them alone costs most. The third input
/// saves less, independently of them.
struct both_or_the_third {
  double operator()(const pt::device_program& d) const {
    const auto sliced = [&](int i) { return d.inputs[i].local({8}, mesh) != pt::shape{8}; };
    if (sliced(2)) return 2;
    return sliced(0) != sliced(1) ? 4 : sliced(0) ? 1 : 3;
  }
};

/// The first input is better sliced on its first dimension until the second input is sliced.
struct first_seems_better {
  double operator()(const pt::device_program& d) const {
    const pt::shape x = d.inputs[0].local({8, 8}, mesh), y = d.inputs[1].local({8}, mesh);
    if (x == pt::shape{8, 8}) return 7;
    const bool first = x[0] != 8, both = y != pt::shape{8};
    return first ? (both ? 4 : 5) : both ? 1 : 6;
  }
};
/// Greedy search followed by neighbor_search, which exchanges earlier actions.
struct beside_greedy {
  void operator()(pt::environment& e) const {
    pt::greedy_search{}(e);
    pt::neighbor_search{}(e);
  }
};

}  // namespace

TEST_CASE("automatic: a transformer's training step is not slower than the experts' schedules") {
  const auto step = tf::trace_training_step<tf::dynamic>({2, 512, 8, 64, 2048, 1024, 256, 32});
  const auto made = [&](const auto&... tactics) {
    return pt::partition(step, mesh, pt::schedule(tactics...));
  };
  const auto expert = made(tf::BP, tf::MP),
             alone = made(pt::automatic({"B", "M"}, pt::a100_80, few));
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
  // The tactic composes with others: after a manual one, and before one.
  const auto mixed = made(tf::BP, pt::automatic({"M"}, pt::a100_80, few));
  CHECK(step_time(mixed, pt::a100_80) <= 1.001 * step_time(made(tf::BP), pt::a100_80));
  CHECK(mixed.tactics.size() == 2);
  CHECK(std::string(mixed.tactics[1].notes[0].view()).starts_with("automatic: "));
  // The search is deterministic, and its actions replay from the log.
  CHECK(actions(made(tf::BP, pt::automatic({"M"}, pt::a100_80, few))) == actions(mixed));
  pt::core_program again(step, mesh);
  CHECK(!pt::replay(again, step, actions(alone)));
  // Memory is too small for replicated parameters, so the search shards them too.
  const auto batch = made(tf::BP);
  const double less = static_cast<double>(batch.cost.peak_bytes) * 0.9;
  const auto small = made(tf::BP, pt::automatic({"B"}, with_memory(less), few));
  CHECK(static_cast<double>(small.cost.peak_bytes) <= less);
  // A step accepts its state in the layout in which it returned it.
  for (int i = 0; i < step.input_count(); ++i)
    for (int k = 0; k < step.output_count(); ++k)
      if (step.input_name(i) == step.output_name(k))
        CHECK(small.input(i).sharding == small.output(k).sharding);
}

TEST_CASE("automatic: no action is taken where none helps") {
  const auto f = pt::trace([](auto x) { return x * 2.f; }, pt::input<float, 3>("x"));
  const auto p = pt::partition(f, mesh, pt::schedule(pt::automatic({"B", "M"}, pt::a100_80, few)));
  CHECK(!p.input("x").sharding.count);
  CHECK(std::string(p.tactics[0].notes[0].view()) ==
        "automatic: found nothing that costs less; the program is unchanged (3 evaluations, "
        "1 partitionings)");
}

TEST_CASE("automatic: the tactics that a search found replay from text and from C++") {
  const auto step = tf::trace_training_step<tf::dynamic>({2, 512, 8, 64, 2048, 1024, 256, 32});
  pt::search_result r;
  const auto found = pt::partition(
      step, mesh,
      pt::schedule(pt::automatic({"B", "M"}, pt::a100_80, {.evaluations = 600, .result = &r})));
  REQUIRE(r.tactics.size() > 1);
  CHECK(r.evaluations == 600);
  CHECK(r.after < r.before);
  CHECK(r.bound <= r.after);
  CHECK(!r.log.empty());
  const pt::text written = pt::print_specification(r);
  CAPTURE(std::string(written.view()));
  CHECK(written.view().find("layers.*.") != std::string_view::npos);
  const auto read = pt::read_schedule(written.view());
  REQUIRE(!read.error);
  const auto again = pt::partition(step, mesh, read.tactics);
  CHECK(pt::print(again.device) == pt::print(found.device));
  CHECK(std::string(pt::print_source(r).view())
            .starts_with("constexpr auto found_1 = partita::manual(\""));
  CHECK(std::string(pt::print_log(r).view()).starts_with("evaluations,seconds,cost\n"));
}

namespace {
// The tactic that print_source prints below.
constexpr auto found_1 = partita::manual("B", {{"x", 0}}, "A1");
constexpr auto found() { return partita::schedule(found_1); }
}  // namespace

TEST_CASE("automatic: the printed C++ compiles and gives the same partitioning") {
  const auto f = pt::trace([](auto x, auto w) { return tanh(matmul(x, w)); },
                           pt::input<float, 4096, 64>("x"), pt::input<float, 64, 64>("w"));
  pt::search_result r;
  const auto p = pt::partition(
      f, mesh, pt::schedule(pt::automatic({"B"}, pt::a100_80, {.evaluations = 99, .result = &r})));
  CHECK(std::string(pt::print_source(r).view()) ==
        "constexpr auto found_1 = partita::manual(\"B\", {{\"x\", 0}}, \"A1\");\n"
        "constexpr auto found() {\n  return partita::schedule(found_1);\n}\n");
  CHECK(pt::print(pt::partition(f, mesh, found()).device) == pt::print(p.device));
}

namespace {
/// A cost model in which each collective costs one and nothing else costs anything.
struct fewest_collectives {
  double operator()(const pt::device_program& d) const {
    double n = 1;
    for (const auto& o : d.local.ops) n += o.def->collective;
    return n;
  }
};
/// A searcher that takes the first action that is accepted.
struct first_action {
  void operator()(pt::environment& e) const {
    for (int a = 0; a < e.action_count(); ++a)
      if (e.step(a)) return static_cast<void>(e.cost());
  }
};
static_assert(pt::CostModel<fewest_collectives> && pt::Searcher<first_action>);
}  // namespace

TEST_CASE("the search's estimate counts the memory of a value behind barriers once") {
  const auto peak = [](bool barrier) {
    const pt::program p = pt::trace(
        [&](auto x, auto w) {
          auto y = tanh(matmul(x, w));
          for (int i = 0; barrier && i < 3; ++i) y = pt::optimization_barrier(y);
          return matmul(y, w);
        },
        pt::input<float, 64, 32>("x"), pt::input<float, 32, 32>("w"));
    pt::core_program c(p, pt::mesh{{"B", 4}});
    CHECK_FALSE(c.tile(c.p.inputs[0], 0, 0));
    c.propagate();
    const pt::machine on = pt::a100_80;
    pt::running_cost estimated(c, on, {});
    estimated.update();
    CHECK(estimated.peak_bytes() ==
          static_cast<double>(pt::estimate(pt::lower(c).device).peak_bytes));
    return estimated.peak_bytes();
  };
  CHECK(peak(true) == peak(false));
}

TEST_CASE("the search's estimate equals the simulation of the lowered program") {
  const auto step = tf::trace_training_step<tf::dynamic>({2, 512, 8, 64, 2048, 1024, 256, 32});
  const auto check = [&](const auto&... tactics) {
    const auto p = pt::partition(step, mesh, pt::schedule(tactics...));
    for (const bool overlap : {false, true}) {
      CAPTURE(overlap);
      pt::running_cost estimated(p.core, pt::a100_80, {.overlap = overlap});
      estimated.update();
      CHECK(estimated.time() ==
            doctest::Approx(pt::simulate(p.device, pt::a100_80, {.overlap = overlap}).time)
                .epsilon(overlap ? 0.05 : 0.01));
      CHECK(estimated.peak_bytes() ==
            doctest::Approx(static_cast<double>(p.cost.peak_bytes)).epsilon(0.01));
    }
  };
  check(tf::BP);
  check(tf::BP, tf::Z2);
  check(tf::BP, tf::Z3);
  check(tf::BP, tf::MP);
  check(tf::BP, tf::MP, tf::Z3);
}

TEST_CASE("the search's estimate includes gathers whose rows stay in place") {
  const auto p = pt::trace(
      [](auto t, auto i) {
        const auto squares = [&](auto u) {
          const auto y = pt::take<0>(u, i);
          return pt::sum(y * y);
        };
        return t - pt::grad(squares, t);
      },
      pt::input<float, 65536, 64>("t"), pt::input<std::int32_t, 1024>("i"));
  double times[2] = {};
  for (const bool keep : {false, true}) {
    const auto r = pt::partition(p, {{"B", 4}}, pt::schedule(pt::manual("B", {{"t", 0}, {"i", 0}})),
                                 {.passes = {.stationary_rows = keep}});
    pt::running_cost estimated(r.core, pt::a100_80, {});
    estimated.update();
    CHECK(estimated.communication() ==
          doctest::Approx(pt::simulate(r.device, pt::a100_80).communication).epsilon(0.001));
    times[keep ? 1 : 0] = estimated.communication();
    pt::collective_counter counter(r.core, {});
    counter.update();
    CHECK(counter.counts() == r.collectives);
  }
  CHECK(times[1] < times[0]);
}

TEST_CASE("automatic: a user's cost model and a user's searcher are used") {
  const auto f = pt::trace([](auto x, auto w) { return matmul(x, w); },
                           pt::input<float, 512, 512>("x"), pt::input<float, 512, 512>("w"));
  pt::search_result r;
  const pt::search_options options{.evaluations = 50, .result = &r};
  const pt::basic_automatic<pt::greedy_search, fewest_collectives> fewest({"B"}, pt::a100_80,
                                                                          options);
  CHECK(pt::partition(f, mesh, pt::schedule(fewest)).collectives.total() == 0);
  CHECK(r.before == 1);
  CHECK(r.tactics.empty());
  const pt::basic_automatic<first_action> first({"B"}, pt::a100_80, options);
  const auto p = pt::partition(f, mesh, pt::schedule(first));
  CHECK(r.evaluations == 1);
  CHECK(p.input("x").sharding.count == 1);
}

TEST_CASE("detour_search finds two actions that only together save cost") {
  const auto f = pt::trace(
      [](auto x, auto y, auto z) {
        return std::tuple{x * 2.f, y * 2.f, z * 2.f};
      },
      pt::input<float, 8>("x"), pt::input<float, 8>("y"), pt::input<float, 8>("z"));
  const auto least = [&]<class Search>(const Search&) {
    pt::search_result r;
    const pt::basic_automatic<Search, both_or_the_third> tactic({"B"}, pt::a100_80,
                                                                {.evaluations = 100, .result = &r});
    pt::partition(f, mesh, pt::schedule(tactic));
    return r.after;
  };
  CHECK(least(pt::exhaustive_search{}) == 1);
  CHECK(least(pt::greedy_search{}) == 2);
  CHECK(least(pt::detour_search{}) == 1);
}

TEST_CASE("a search exchanges an early action once it knows the later ones") {
  const auto f = pt::trace(
      [](auto x, auto y) {
        return std::tuple{x * 2.f, y * 2.f};
      },
      pt::input<float, 8, 8>("x"), pt::input<float, 8>("y"));
  const auto found = [&]<class Search>(const Search&) {
    pt::search_result r;
    const pt::basic_automatic<Search, first_seems_better> tactic(
        {"B"}, pt::a100_80, {.evaluations = 100, .result = &r});
    pt::partition(f, mesh, pt::schedule(tactic));
    return r;
  };
  CHECK(found(pt::greedy_search{}).after == 4);
  CHECK(found(beside_greedy{}).after == 1);
  CHECK(found(beside_greedy{}).tactics.size() == 2);
}

TEST_CASE("automatic: invalid searches are refused") {
  const auto f = pt::trace([](auto x) { return x * 2.f; }, pt::input<float, 8>("x"));
  const auto run = [&](const auto& tactic) { pt::partition(f, mesh, pt::schedule(tactic)); };
  CHECK_THROWS_WITH(run(pt::automatic({"B"}, pt::a100_80, {.evaluations = 0})),
                    "S029 automatic: 1 axes and 0 evaluations; give 1 to 8 axes, at least one "
                    "evaluation and no negative time");
  CHECK_THROWS_WITH(run(pt::automatic({"B"}, with_memory(3))),
                    "S030 automatic: fully sharded arguments need 4.00 B per device; a device has "
                    "3.00 B, too little by 1.00 B; the largest is \"x\" "
                    "tensor<8xf32> of 32.0 B; use more devices, or devices with more memory");
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
// Tactics that follow a search are known to the compiler too.
constexpr auto searched_first = [] {
  return pt::partition(pt::trace([](auto x, auto w) { return tanh(matmul(x, w)); },
                                 pt::input<float, 3, 4096>("x"), pt::input<float, 4096, 4096>("w")),
                       {{"B", 4}},
                       pt::schedule(pt::automatic({"B"}, pt::a100_80, {.evaluations = 20}),
                                    pt::manual("B", {{"w", 0}})));
};
static_assert(pt::check<searched_first>.input("w").local_shape == pt::shape{1024, 4096});
}  // namespace

TEST_CASE("a search takes the tactics after it into account") {
  // On its own, the search slices the columns of the matrix. The tactic after it slices the rows.
  const auto f = pt::trace([](auto x, auto w) { return tanh(matmul(x, w)); },
                           pt::input<float, 3, 4096>("x"), pt::input<float, 4096, 4096>("w"));
  const pt::automatic columns({"B"}, pt::a100_80, few);
  CHECK(pt::partition(f, mesh, pt::schedule(columns)).input("w").sharding.dim_of(0) == 1);
  const auto rows = pt::manual("B", {{"w", 0}});
  CHECK(pt::partition(f, mesh, pt::schedule(columns, rows)).input("w").sharding.dim_of(0) == 0);
  // A search ignores another search that comes after it.
  const auto twice = pt::partition(f, mesh, pt::schedule(columns, columns));
  CHECK(twice.input("w").sharding.dim_of(0) == 1);
  // A search need not save memory that a later tactic saves.
  const auto step = tf::trace_training_step<tf::dynamic>({2, 512, 8, 64, 2048, 1024, 256, 32});
  const auto by_hand = pt::partition(step, mesh, pt::schedule(tf::BP, tf::MP, tf::Z3));
  const auto device = with_memory(static_cast<double>(by_hand.cost.peak_bytes));
  const auto found =
      pt::partition(step, mesh, pt::schedule(tf::BP, pt::automatic({"M"}, device, few), tf::Z3));
  CHECK(static_cast<double>(found.cost.peak_bytes) <= device.memory);
  CHECK(step_time(found, device) <= 1.001 * step_time(by_hand, device));
}

TEST_CASE("the memory that a cost model sees is that of the program, with a gathered scale too") {
  const auto f = pt::trace(
      [](auto x, auto scale) {
        const auto h = tanh(x);
        const auto y = h * scale;
        return std::tuple{sum<1>(h), sum<1>(h * h), sum<1>(y), sum<1>(y * y)};
      },
      pt::input<float, 64, 4096>("x"), pt::input<float, 4096>("scale"));
  for (const bool sliced : {false, true}) {
    CAPTURE(sliced);
    const auto p = pt::partition(
        f, mesh,
        pt::schedule(pt::manual("B", {{"x", 0}}),
                     pt::manual("B", {{"scale", sliced ? pt::placement(0) : pt::replicated}})));
    CHECK(p.collectives.all_gather == sliced);
    pt::running_cost cost(p.core, pt::a100_80, {});
    cost.update();
    CHECK(cost.peak_bytes() ==
          doctest::Approx(static_cast<double>(p.cost.peak_bytes)).epsilon(0.05));
  }
}
