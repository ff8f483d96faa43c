// Updates added to the rows of a table, sharded by rows, by updates or by both in either order:
// random sizes. A device sends at most what it takes to gather the updates, and at most what it
// takes to sum tables.
#include <doctest/doctest.h>

#include <algorithm>

#include <partita/partita.hpp>

#include "../data.hpp"

namespace pt = partita;

TEST_CASE("updates of a table's rows are gathered, or tables summed, whichever sends less") {
  const pt::mesh m{{"A", 4}};
  const auto by_updates = pt::manual("A", {{"i", 0}, {"u", 0}}, "DP");
  const auto by_rows = pt::manual("A", {{"t", 0}}, "ROW");
  int gathers = 0, sums = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    data::random r{seed};
    const std::int64_t rows = 4 << r.in(0, 6), updates = 4 << r.in(0, 6), width = r.in(1, 3);
    pt::builder b;
    const auto t = pt::ops::parameter(b, "t", {pt::dtype::f64, {rows, width}});
    const auto i = pt::ops::parameter(b, "i", {pt::dtype::i32, {updates}});
    const auto u = pt::ops::parameter(b, "u", {pt::dtype::f64, {updates, width}});
    const std::int64_t attrs[] = {static_cast<std::int64_t>(pt::ops::scatter_update::add)};
    const pt::value_id operands[] = {t, i, u};
    b.p.outputs = {{b.emit(pt::def<pt::op::scatter>, operands, attrs, b.type(t)), b.p.intern("t")}};
    const pt::program& p = b.p;
    const std::int64_t gather = 3 * updates * (4 + 8 * width) / 4,
                       sum = 2 * 3 * rows * width * 8 / 4;
    const auto sent = [&](const auto& schedule) {
      const auto made = pt::partition(p, m, schedule);
      const auto x = data::arguments(p, seed);
      CHECK(pt::max_difference(pt::evaluate(p, x), pt::emulate(made, x)) < 1e-12);
      return made.cost.collective_bytes;
    };
    const auto least = std::min(gather, sum);
    CHECK(sent(pt::schedule(by_updates)) <= least);
    CHECK(sent(pt::schedule(by_rows, by_updates)) <= gather);
    CHECK(sent(pt::schedule(by_updates, by_rows)) <= least);
    ++(gather < sum ? gathers : sums);
  }
  CHECK(gathers > 10);
  CHECK(sums > 10);
}
