// Several tactics over several axes in every order: the results are those of the source. Where the
// axes do not compete for the same loops, the program is the same, too.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

using tactic = pt::manual_tactic<1>;

constexpr pt::mesh meshes[] = {{{"a", 2}, {"b", 3}, {"c", 2}}, {{"a", 1}, {"b", 3}, {"c", 4}}};

/// A tactic that has the name of the value.
tactic on(std::string_view axis, std::string_view name, pt::placement where) {
  const pt::manual_entry entries[] = {{name, where}};
  return {axis, entries, name};
}

/// The axes of an op's loops over a factor, for any order of the tactics. (The op is named by its
/// source value, so that the `tiling` ops of actions count for the value.)
using claims = std::map<std::pair<pt::value_id, int>, std::set<int>>;

void claim(claims& all, const pt::core_program& c) {
  for (pt::op_id o : c.order) {
    if (c.p.op(o).result_count == 0) continue;
    for (const auto& l : c.nest_of(o))
      if (l.factor != pt::any_factor) all[{c.source_of(c.p.op(o).result), l.factor}].insert(l.axis);
  }
}

/// The results of the tactics in all their orders.
struct orders {
  bool same = true;      ///< true if the device-local program is always the same
  bool compete = false;  ///< true if two axes had loops over one factor of an op
};
/// Checks that every order runs and gives the results of the source.
///
/// Law       where no two axes compete for a factor, all orders give the same device-local program.
orders check_orders(const pt::program& f, const pt::mesh& mesh,
                    const std::vector<tactic>& tactics) {
  const auto x = data::arguments(f);
  const pt::results whole = pt::evaluate(f, x);
  std::vector<std::size_t> order(tactics.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  orders all;
  claims claimed;
  std::string first;
  do {
    std::vector<tactic> schedule;
    for (std::size_t i : order) schedule.push_back(tactics[i]);
    const auto p = pt::partition(f, mesh, schedule);
    CHECK(!pt::verify(p.device));
    CHECK(pt::equal(pt::emulate(p, x), whole));
    CHECK(pt::equal(pt::temporal(p, x), whole));
    const std::string text = str(pt::print(p.device));
    if (first.empty()) first = text;
    all.same = all.same && text == first;
    claim(claimed, p.core);
  } while (std::next_permutation(order.begin(), order.end()));
  for (const auto& each : claimed) all.compete = all.compete || each.second.size() > 1;
  CHECK((all.same || all.compete));
  return all;
}

}  // namespace

TEST_CASE("three tactics on three axes, two or three dimensions: all orders of all choices") {
  const auto f = pt::trace(
      [](auto x, auto w, auto v) {
        const auto h = tag("h", matmul(x, w));                // (12, 24)
        const auto y = matmul(reshape<12, 12, 2>(h + x), v);  // (12, 12, 4)
        return std::tuple{pt::output("y", y), pt::output("s", sum<0>(h))};
      },
      pt::input<float, 12, 24>("x"), pt::input<float, 24, 24>("w"), pt::input<float, 2, 4>("v"));
  using choice = std::pair<std::string_view, pt::placement>;
  const choice choices[] = {{"x", 0}, {"x", 1}, {"w", 1}, {"h", 1}, {"h", pt::replicated},
                            {"y", 0}, {"y", 1}};
  for (const pt::mesh& mesh : meshes) {
    int commute = 0, other = 0, compete = 0;
    for (const auto& [n0, p0] : choices)
      for (const auto& [n1, p1] : choices)
        for (const auto& [n2, p2] : choices) {
          CAPTURE(std::string(n0) + std::to_string(p0.dim) + " " + std::string(n1) +
                  std::to_string(p1.dim) + " " + std::string(n2) + std::to_string(p2.dim));
          const orders all =
              check_orders(f, mesh, {on("a", n0, p0), on("b", n1, p1), on("c", n2, p2)});
          ++(all.same ? commute : other);
          compete += all.compete;
        }
    MESSAGE(str(pt::concat(mesh)), ": orders commute: ", commute, ", they do not: ", other,
            ", axes compete: ", compete);
    CHECK(commute > 50);  // the law covers some orders
    CHECK(other > 50);
  }
}

TEST_CASE("two dimensions of a value by five tactics on four axes: each dimension in their order") {
  const auto f = pt::trace([](auto x, auto w) { return matmul(x, w); },
                           pt::input<float, 16, 16>("x"), pt::input<float, 16, 8>("w"));
  const pt::mesh mesh{{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}};
  const auto x = data::arguments(f);
  const pt::results whole = pt::evaluate(f, x);
  int order[] = {0, 1, 2, 3, 4};  // the last one: columns of w along the first axis
  do {
    std::vector<tactic> tactics;
    for (int i : order) tactics.push_back(i < 4 ? on(mesh.name(i), "x", i % 2) : on("a", "w", 1));
    const auto p = pt::partition(f, mesh, tactics);
    CHECK(pt::equal(pt::emulate(p, x), whole));
    CHECK(pt::equal(pt::temporal(p, x), whole));
    pt::layout expected;
    for (int i : order)
      if (i < 4) expected.push_back(i, i % 2);
    CHECK(p.input("x").sharding == expected);
    CHECK(p.input("x").local_shape == pt::shape{4, 4});
    CHECK(p.input("w").sharding.dim_of(0) == 1);
  } while (std::next_permutation(std::begin(order), std::end(order)));
}

TEST_CASE("a microbatch between any two tactics gives the same program") {
  const auto f = pt::trace(
      [](auto x, auto w) {
        const auto h = tag("h", matmul(x, w));
        return std::tuple{pt::output("y", h * h), pt::output("s", sum<0>(h))};
      },
      pt::input<float, 24, 12>("x"), pt::input<float, 12, 12>("w"));
  const auto x = data::arguments(f);
  const pt::results whole = pt::evaluate(f, x);
  const auto MB = pt::microbatch(2, {{"x", 0}});
  const std::pair<tactic, tactic> pairs[] = {{on("a", "x", 0), on("b", "w", 1)},
                                             {on("b", "x", 0), on("c", "x", 0)},
                                             {on("b", "h", pt::replicated), on("c", "x", 1)}};
  for (const auto& [s, t] : pairs) {
    const auto p = pt::partition(f, meshes[0], pt::schedule(MB, s, t));
    const auto same = [&](const pt::partitioned& q) {
      CHECK(str(pt::print(q.device)) == str(pt::print(p.device)));
      CHECK(pt::equal(pt::emulate(q, x), whole));
      CHECK(pt::equal(pt::temporal(q, x), whole));
    };
    same(p);
    same(pt::partition(f, meshes[0], pt::schedule(s, MB, t)));
    same(pt::partition(f, meshes[0], pt::schedule(s, t, MB)));
  }
}
