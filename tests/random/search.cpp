// Searches on random programs: costs that follow actions, hashes of states, bounds, and the
// distance of a search's result from the best.
#include <doctest/doctest.h>

#include <cstdlib>

#include <partita/search/searchers.hpp>

#include "generator.hpp"
#include "schedule.hpp"

namespace pt = partita;
using namespace random_test;

namespace {

/// All axes of a case's mesh, with the program before any action.
struct searched {
  pt::core_program core;
  pt::vec<int> axes;
  pt::machine on = pt::a100_80;

  explicit searched(const test_case& c) : core(c.p, c.mesh, some_core_options(c)) {
    core.start_tactic("search");
    core.propagate();
    pt::failure f;
    for (int a = 0; a < c.mesh.whole_rank(); ++a)
      axes.push_back(core.axis(c.mesh.name(a), "test", f));
    on.device.kernel = 1e-9;  // so that small programs can improve
    on.device.near.latency = 1e-9;
  }
};

double fresh_cost(const pt::environment& e, const pt::machine& on) {
  pt::running_cost fresh(e.core(), on, {.overlap = e.options().overlap});
  fresh.update();
  return pt::penalized(fresh.time(), fresh.peak_bytes(), e.memory());
}

}  // namespace

TEST_CASE("costs that follow actions in both directions equal those of the program") {
  int steps = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    const test_case c = generator(seed).make();
    const searched s(c);
    pt::environment e(s.core, s.axes, s.on, {.evaluations = 1000000, .overlap = seed % 2 == 0});
    if (e.action_count() == 0) continue;
    data::random r{seed};
    for (int i = 0; i < 24; ++i) {
      const int a = static_cast<int>(r.in(0, e.action_count() - 1));
      const std::uint64_t before = e.hash();
      if (e.step(a)) {
        ++steps;
      } else {
        ++refused;
        REQUIRE(e.hash() == before);
      }
      if (r.one_in(3)) {
        const double cost = e.cost();
        REQUIRE(cost == fresh_cost(e, s.on));
        REQUIRE(cost >= e.lower_bound() * (1 - 1e-12));
      }
      if (r.one_in(5)) e.mark();
      if (r.one_in(4)) e.go_back();
      if (r.one_in(9)) REQUIRE(e.go_to(pt::environment::path(e.taken())));
    }
  }
  CHECK(steps > 1000);
  CHECK(refused > 100);
}

TEST_CASE("searches of small programs find the best partitioning") {
  int programs = 0, best = 0;
  for (std::uint64_t seed = 1; programs < 20 && seed < 2000; ++seed) {
    CAPTURE(seed);
    const test_case c = generator(seed).make();
    const searched s(c);
    const pt::search_options options{.evaluations = 3000};
    pt::environment all(s.core, s.axes, s.on, options);
    if (all.action_count() < 6) continue;
    pt::exhaustive_search{}(all);
    if (all.spent() || all.states_seen() < 40 || !(all.best_cost() < all.first())) continue;
    ++programs;
    pt::environment e(s.core, s.axes, s.on, options);
    pt::default_search{}(e);
    best += e.best_cost() <= all.best_cost() * (1 + 1e-9);
    CHECK(e.best_cost() <= all.best_cost() * 1.05);
    CHECK(all.best_cost() <= e.best_cost());
  }
  CHECK(programs == 20);
  CHECK(best >= 18);
}
