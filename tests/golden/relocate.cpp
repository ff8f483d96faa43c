// The pass `relocate`: what is sent is the smallest value of a chain of cheap ops.
#include <doctest/doctest.h>

#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace {

const pt::mesh four{{"d", 4}};

/// The bytes that a device sends, after checks of the result and the proof.
template <class Schedule>
std::int64_t sent(const pt::program& p, const Schedule& s, bool relocate) {
  const auto made = pt::partition(p, four, s, {.passes = {.relocate = relocate}});
  const auto x = data::arguments(p);
  CHECK(pt::max_difference(pt::evaluate(p, x), pt::emulate(made, x)) < 1e-5);
  const pt::verdict v = pt::prove(made);
  CHECK_MESSAGE(v.proved, data::str(v.error.message));
  return made.cost.collective_bytes;
}

}  // namespace

TEST_CASE("differences of all pairs of rows gather the rows, not their copies") {
  const auto distances = [](auto x) {
    const auto d = pt::expand_dims<0>(x) - pt::expand_dims<1>(x);
    return pt::sum<1>(pt::exp(-pt::sum<2>(d * d)));
  };
  const pt::program p = pt::trace(distances, pt::input<float, 32, 3>("x"));
  const auto rows = pt::schedule(pt::manual("d", {{"x", 0}}));
  CHECK(sent(p, rows, true) == 3 * 8 * 3 * 4);  // three other shards of x
  CHECK(sent(p, rows, false) > 3 * 8 * 3 * 4);
}

TEST_CASE("a value that is converted to a wider type is sent before, to a narrower one after") {
  const auto wider = pt::trace([](auto x, auto w) { return matmul(x, pt::convert<float>(w)); },
                               pt::input<float, 16, 8>("x"), pt::input<pt::bf16, 8, 4>("w"));
  const auto at_once = pt::schedule(pt::shard({{"x", {"d"}}, {"w", {"d"}}}));
  CHECK(sent(wider, at_once, true) == 3 * 2 * 4 * 2);
  CHECK(sent(wider, at_once, false) == 3 * 2 * 4 * 4);
  const auto narrower =
      pt::trace([](auto x) { return pt::output("y", pt::exp(pt::convert<pt::bf16>(pt::sin(x)))); },
                pt::input<float, 16, 16>("x"));
  const auto other_way = pt::schedule(pt::shard({{"x", {"d"}}, {"y", {{}, "d"}}}));
  CHECK(sent(narrower, other_way, true) == 3 * 4 * 4 * 2);
}

TEST_CASE("a slice is sent instead of what it is taken from") {
  const auto parts = pt::trace(
      [](auto x) {
        const auto first = pt::slice<1, 0, 1>(x), second = pt::slice<1, 1, 2>(x);
        return pt::output("y", pt::transpose<2, 1, 0>(first) + pt::transpose<2, 1, 0>(second));
      },
      pt::input<float, 16, 5, 8>("x"));
  const auto other_way = pt::schedule(pt::shard({{"x", {"d"}}, {"y", {"d"}}}));
  CHECK(sent(parts, other_way, true) <= sent(parts, other_way, false));
  CHECK(sent(parts, other_way, true) <= 2 * 3 * 4 * 2 * 4);
}

TEST_CASE("relocate is reported, and leaves what an action asks for and results of the program") {
  const auto f = pt::trace([](auto x, auto w) { return matmul(x, pt::convert<float>(w)); },
                           pt::input<float, 16, 8>("x"), pt::input<pt::bf16, 8, 4>("w"));
  const auto p = pt::partition(f, four, pt::schedule(pt::shard({{"x", {"d"}}, {"w", {"d"}}})));
  CHECK(data::str(pt::explain(p))
            .find("convert(%w) needs it where it is computed, which sends "
                  "less than to move its result") != std::string::npos);
  const auto returned =
      pt::trace([](auto w) { return pt::convert<float>(w); }, pt::input<pt::bf16, 8, 4>("w"));
  CHECK(pt::partition(returned, four, pt::schedule(pt::manual("d", {{"w", 0}})))
            .collectives.total() == 0);
}
