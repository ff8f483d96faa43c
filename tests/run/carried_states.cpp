// Steps with a loop of their own over microbatches, which carries states from one to the next.
#include "../carried_states.hpp"

#include <doctest/doctest.h>

#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/merge.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/mpmd/pipeline_memory.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/print_pipeline.hpp>
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/mpmd/remat.hpp>
#include <partita/run/pipeline.hpp>

#include "../data.hpp"
#include "../exported_check.hpp"

namespace pt = partita;
using data::str;

namespace {

const pt::topology cluster{{"m0", {{"B", 2}, {"M", 2}}}, {"m1", {{"B", 4}}}};
const pt::assignment stages{.names = {{"front", "m0"}, {"back", "m1"}}};

void check_all(const pt::pipelined& p, const std::vector<pt::array>& x,
               const pt::results& expected) {
  CHECK(str(pt::prove(p).error.message) == "");
  CHECK(pt::equal(pt::emulate(p, x), expected));
  CHECK(pt::equal(pt::emulate(p, pt::mesh_mode::threads, x), expected));
  CHECK(exported_check::fault_of(p) == "");
}

}  // namespace

TEST_CASE("states pass from microbatch to microbatch, under every ascending order") {
  const pt::program f = carried::traced();
  REQUIRE(str(f.error.message) == "");
  const auto x = data::arguments(f);
  const pt::results expected = pt::evaluate(f, x);
  for (const auto* order :
       {&pt::gpipe, &pt::one_f_one_b, &pt::gpipe_1f1b_last, &pt::zb_h1, &pt::zb_h2, &pt::circular,
        &pt::circular_phases, &pt::interleaved_1f1b}) {
    CAPTURE(std::string(order->name));
    const pt::pipelined p =
        pt::pipeline(f, cluster, *order, {.where = stages, .channels = {.capacity = 8}});
    CHECK(p.microbatches == 6);
    check_all(p, x, expected);
    check_all(pt::rematerialized(p), x, expected);
    check_all(pt::absorbed(p), x, expected);
    for (const auto& m : pt::memory_of(p)) CHECK(m.peak >= m.arguments);
  }
}

TEST_CASE("an order against the microbatches contradicts the carried states") {
  const pt::program f = carried::traced();
  const auto last_first = [](const pt::fragment_call& c) {
    return std::tuple{c.transposed, -c.microbatch};
  };
  const std::string wrong =
      data::thrown([&] { (void)pt::pipeline(f, cluster, last_first, {.where = stages}); });
  CHECK(wrong.substr(0, 44) == "O006 order: it contradicts the flow of data:");
  CHECK(wrong.find("on mesh \"m0\" waits for the result of F") != std::string::npos);
}

TEST_CASE("carried states of sharded stages have the values of the source") {
  const pt::program f = carried::traced();
  const auto x = data::arguments(f);
  const pt::results expected = pt::evaluate(f, x);
  constexpr auto PP =
      pt::pipeline({.stages = {{"front"}, {"back"}}, .order = pt::one_f_one_b}, "PP");
  constexpr auto BP = pt::manual("B", {{"xs", 1}, {"ys", 1}}, "BP");
  constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");
  constexpr auto SP = pt::manual("B", {{"mean", 0}, {"echo", 0}}, "SP");
  check_all(pt::partition(f, cluster, pt::schedule(PP, BP, MP)), x, expected);
  check_all(pt::partition(f, cluster, pt::schedule(PP, SP)), x, expected);
  check_all(pt::partition(f, cluster, pt::schedule(PP, MP, BP)), x, expected);
}

TEST_CASE("proofs refuse wrong carried states") {
  const pt::program f = carried::traced();
  const pt::pipelined good = pt::pipeline(f, cluster, pt::one_f_one_b, {.where = stages});
  REQUIRE(pt::prove(good).proved);
  int states = 0;
  for (pt::value_id v = 0; v < static_cast<pt::value_id>(good.next_slot.size()); ++v) {
    if (good.next_of(v) < 0) continue;
    ++states;
    for (pt::value_id w = 0; w < v; ++w) {  // another value's next state
      if (good.next_of(w) < 0) continue;
      pt::pipelined wrong = good;
      wrong.next_slot[static_cast<std::size_t>(v)] = good.next_of(w);
      CHECK_FALSE(pt::prove(wrong).proved);
    }
  }
  CHECK(states == 3);
  pt::pipelined another = good;  // of another step
  another.original = pt::trace([](const auto&... in) { return carried::step_with(0.25, in...); },
                               pt::input<double, 6, 4, 4>("xs"), pt::input<double, 6, 4, 4>("ys"),
                               pt::input<double, 4, 4>("w1"), pt::input<double, 4, 4>("w2"),
                               pt::input<double, 4>("mean"), pt::input<std::int64_t>("key"),
                               pt::input<double, 4>("echo"));
  CHECK_FALSE(pt::prove(another).proved);
}

TEST_CASE("loops that cannot be the microbatch loop are refused") {
  const pt::program f = carried::traced();
  CHECK(data::thrown([&] {
          (void)pt::pipeline(f, cluster, pt::gpipe, {.where = stages, .microbatches = 4});
        }) ==
        "O152 pipeline: scan of 6 iterations is the loop over microbatches of this step; 4 are "
        "requested: leave .microbatches out");
  const auto body = [](const auto& c, const auto& x) {
    return std::pair{pt::named("back", [](const auto& v) { return v * 2; })(pt::named(
                         "front", [](const auto& v, const auto& w) { return v + w; })(c, x)),
                     pt::nothing{}};
  };
  const pt::program backwards = pt::trace(
      [&](const auto& xs, const auto& c) {
        return pt::output("y", pt::scan(body, c, xs, {.reversed = true}).first);
      },
      pt::input<double, 6, 4>("xs"), pt::input<double, 4>("c"));
  CHECK(
      data::thrown([&] { (void)pt::pipeline(backwards, cluster, pt::gpipe, {.where = stages}); }) ==
      "O150 pipeline: scan of 6 iterations is the loop over microbatches and runs backwards; "
      "reverse what it slices and stacks instead");
  const pt::program twice = pt::trace(
      [&](const auto& xs, const auto& c) {
        return pt::output("y", pt::scan(body, pt::scan(body, c, xs).first, xs).first);
      },
      pt::input<double, 6, 4>("xs"), pt::input<double, 4>("c"));
  CHECK(data::thrown([&] {
          (void)pt::pipeline(twice, cluster, pt::gpipe, {.where = stages});
        }).substr(0, 116) ==
        "O151 pipeline: named parts are in two loops over microbatches, scan of 6 iterations and "
        "scan of 6 iterations: add (t");
}
