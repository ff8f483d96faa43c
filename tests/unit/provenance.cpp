// The source op of each op, through every rewrite; nested programs of any depth.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/partita.hpp>

#include "texts.hpp"

namespace {

namespace pt = partita;
using unit::str;

std::string lines(const pt::partitioned& p) {
  const std::string all = str(pt::explain(p));
  return all.substr(0, all.find("in all:\n"));
}

constexpr pt::mesh mesh{{"B", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto Z3 = pt::manual("B", {{"w", 0}}, "Z3");
constexpr auto MB = pt::microbatch(2, {{"x", 0}});

/// A training step; if `loop` is true, its backward pass runs through a nested program.
pt::program step(bool loop) {
  const auto model = [=](auto x, auto w) {
    return pt::grad(
        [&](auto v) {
          if (!loop) return sum(tanh(matmul(tanh(matmul(x, v)), v)));
          return sum(pt::for_loop(
              0, 3, [&](auto, auto h) { return tanh(matmul(h, v)); }, x));
        },
        w);
  };
  return pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w"));
}

/// Programs nested `depth` deep: each but the innermost calls the next.
pt::program nested_calls(int depth) {
  pt::program inner;
  for (int d = 0; d < depth; ++d) {
    const bool last = d + 1 == depth;
    pt::builder b;
    const pt::value_id x[] = {pt::ops::parameter(b, last ? "x" : "", {pt::dtype::f32, {8}})};
    const pt::value_id y = d == 0 ? pt::ops::tanh(b, x[0])
                                  : pt::ops::call(b, "f", x, static_cast<pt::program&&>(inner));
    b.p.inputs = {x[0]};
    b.p.outputs.push_back({y, last ? b.p.intern("y") : pt::text_ref{}});
    inner = static_cast<pt::program&&>(b.p);
  }
  return inner;
}

pt::vec<pt::op_node> all_ops(const pt::program& p) {
  pt::vec<pt::op_node> list;
  pt::ir_detail::for_each_op(p, [&](const pt::op_node& n) { list.push_back(n); });
  return list;
}

/// Checks that every op of the device-local program names an op of the source: the same op, or the
/// op for which it was added. Each op of the source that is not a name occurs there.
void check_sources(const pt::partitioned& p) {
  const auto source = all_ops(p.source);
  std::vector<int> same(source.size(), 0);
  for (const auto& n : all_ops(p.device.local)) {
    const bool added_loop = n.def->name == "scan" && n.marks.source < 0;
    if (added_loop || n.def->name == "parameter") continue;
    REQUIRE(n.marks.source >= 0);
    REQUIRE(n.marks.source < static_cast<int>(source.size()));
    const auto& from = source[n.marks.source];
    CHECK(n.marks.transposed == from.marks.transposed);
    CHECK(n.marks.origin == from.marks.origin);
    if (n.def->name == from.def->name) same[static_cast<std::size_t>(n.marks.source)] = 1;
  }
  for (std::size_t i = 0; i < source.size(); ++i)
    if (source[i].def->role == pt::op_role::compute && !source[i].def->identity) {
      INFO("op ", i, ", ", std::string(source[i].def->name));
      CHECK(same[i] == 1);
    }
}

}  // namespace

TEST_CASE("every op of the device-local program knows its source op") {
  for (const bool loop : {false, true}) {
    check_sources(pt::partition(step(loop), mesh, pt::schedule(BP, Z3)));
    check_sources(pt::partition(step(loop), mesh, pt::schedule(BP, Z3, MB)));
    check_sources(pt::partition(step(loop), mesh, pt::schedule(BP, Z3, MB),
                                {.passes = {.combine_below = 1 << 20, .share_gathers = true}}));
  }
  const auto uneven = pt::trace([](auto x, auto w) { return sum(tanh(matmul(x, w))); },
                                pt::input<float, 7, 4>("x"), pt::input<float, 4, 4>("w"));
  check_sources(
      pt::partition(uneven, mesh, pt::schedule(pt::manual("B", {{"x", 0}}, pt::uneven::pad))));
}

TEST_CASE("ops are numbered as they are parsed, and keep their numbers") {
  pt::program p = step(true);
  int number = 0;
  for (const auto& n : all_ops(p)) {
    CHECK(n.marks.source == number++);
    CHECK(n.marks.origin != n.marks.source);
    CHECK((n.marks.origin >= 0) <= (n.marks.transposed > 0));
  }
  const auto before = all_ops(p);
  pt::number_ops(p);
  const auto after = all_ops(p);
  for (std::size_t i = 0; i < before.size(); ++i)
    CHECK(before[i].marks.origin == after[i].marks.origin);
  // The derivatives in the backward loop are those of the forward loop's ops, not of their copies.
  int derivatives = 0;
  for (const auto& n : before) {
    if (n.marks.origin < 0) continue;
    ++derivatives;
    CHECK(!before[n.marks.origin].marks.again);
  }
  CHECK(derivatives > 4);
}

TEST_CASE("explain with microbatches names the same ops as without") {
  for (const bool loop : {false, true}) {
    const auto without = pt::partition(step(loop), mesh, pt::schedule(BP, Z3));
    const auto with = pt::partition(step(loop), mesh, pt::schedule(BP, Z3, MB));
    std::string expected = lines(without);
    std::string found = lines(with);
    CHECK(expected.find("(backward of ") != std::string::npos);
    // Apart from the number of times that they run.
    for (std::string* text : {&expected, &found})
      for (std::size_t at = text->find("  x"); at != std::string::npos; at = text->find("  x", at))
        text->replace(at, text->find("  ", at + 3) - at, "");
    CHECK(found == expected);
  }
}

TEST_CASE("tidy looks at each level of nested programs once") {
  const auto visits = [](int depth) { return pt::ir_detail::liveness(nested_calls(depth)).visits; };
  CHECK(visits(200) - visits(100) == visits(100) - visits(0 + 1) + visits(2) - visits(1));
  CHECK(visits(200) < 5 * 200);
}

TEST_CASE("a thousand levels of nested programs") {
  const pt::program p = pt::ir_detail::tidy(nested_calls(1000));
  CHECK(p.nesting == 999);
  const pt::program q = pt::parse(pt::print(p));
  CHECK(pt::equivalent(p, q));
  const auto r = pt::partition(q, mesh, pt::schedule(BP));
  CHECK(!r.error);
  CHECK(all_ops(r.device.local).size() == all_ops(q).size());
  CHECK(r.input("x").local_shape == pt::shape{4});
}
