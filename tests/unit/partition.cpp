// Guarantees of `partition` apart from figures: it verifies its result and keeps the data that it
// is given.
#include <doctest/doctest.h>

#include <concepts>
#include <string>
#include <vector>

#include <partita/partita.hpp>

#include "texts.hpp"

namespace pt = partita;
using unit::str;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };
constexpr auto traced = [] {
  return pt::trace(mlp, pt::input<float, 16, 8>("x"), pt::input<float, 8, 16>("w1"),
                   pt::input<float, 16, 8>("w2"));
};

/// An unsound tile map: it claims that slices of dimension 0 of the operand give slices of
/// dimension 1 of the result.
struct liar {
  static constexpr std::string_view name = "liar";
  static constexpr int operand_count = 1;
  static constexpr void infer(pt::infer_context& c) { c.result = c.operands[0]; }
  static constexpr void tile_map(pt::tile_map_context& c) { c.tile(16, 1).operand(0, 0); }
};
pt::program with_liar() {
  pt::builder b;
  const pt::value_id x = pt::ops::parameter(b, "x", {pt::dtype::f32, {16, 16}});
  const pt::value_id operands[] = {x};
  const pt::value_id y = b.emit(pt::def<liar>, operands, {});
  b.p.outputs.push_back({y, b.p.intern("y")});
  return b.p;
}
constexpr auto lied = [] {
  pt::builder b;
  const pt::value_id x = pt::ops::parameter(b, "x", {pt::dtype::f32, {16, 16}});
  const pt::value_id operands[] = {x};
  const pt::value_id y = b.emit(pt::def<liar>, operands, {});
  b.p.outputs.push_back({y, b.p.intern("y")});
  return pt::partition(b.p, mesh, pt::schedule(pt::manual("B", {{"x", 0}})), {.verify = true});
};
constexpr std::string_view wrong =
    "P001 internal error: partition made a wrong device-local program: P001 internal error: op "
    "1 (liar) has type tensor<16x4xf32>, its shape rule returns tensor<4x16xf32>; please report";

}  // namespace

TEST_CASE("P001 a device-local program that does not verify") {
  for (bool asked : {false, true}) {
    CAPTURE(asked);
#ifdef NDEBUG
    if (!asked) continue;
#endif
    std::string what;
    try {
      (void)pt::partition(with_liar(), mesh, pt::schedule(pt::manual("B", {{"x", 0}})),
                          {.verify = asked});
    } catch (const pt::error& e) {
      what = e.what();
    }
    CHECK(what == wrong);
  }
}
static_assert([] { return lied().error.message == wrong; }());

TEST_CASE("P001 collectives whose axes and dimensions do not match") {
  pt::device_program d;
  d.local = pt::parse(R"(func @main(%x: tensor<8x4x2xf32>) attributes {mesh = {"B":4, "M":2}} {
  %y = all_to_all [{}, {}, {"M", "B"}] -> [{"B"}, {"M"}, {}] %x : tensor<2x2x16xf32>
  %z = permute <"B", "M"> -> <"M", "B"> %x : tensor<8x4x2xf32>
  return %y, %z : tensor<2x2x16xf32>, tensor<8x4x2xf32>
})",
                      d.mesh);
  CHECK(!pt::verify(d));
  const auto with = [&](pt::op_id o, int attribute, std::int64_t value) {
    pt::device_program other = d;
    other.local.attr_list[other.local.op(o).attr_begin + attribute] = value;
    return str(pt::verify(other).message);
  };
  const auto wrong_op = [](std::string op) {
    return "P001 internal error: the axes and dimensions of op " + op +
           " do not fit together; please report";
  };
  const std::string moved = wrong_op("1 (all_to_all)"), permuted = wrong_op("2 (permute)");
  CHECK(with(1, 6, 2) == moved);     // "B" from dimension 2 to dimension 2
  CHECK(with(1, 7, 1) == moved);     // "M" twice
  CHECK(with(1, 6, 3) == moved);     // a dimension that does not exist
  CHECK(with(2, 2, 1) == permuted);  // from "M" twice
  CHECK(with(2, 4, 2) == permuted);  // an axis that does not exist
}

TEST_CASE("the result of partition outlives the program") {
  static_assert(std::same_as<decltype(std::declval<pt::partitioned>().input(0).name), pt::text>);
  pt::sharded_value v, w;
  {
    const auto p = pt::partition(traced(), mesh, pt::schedule(pt::manual("B", {{"x", 0}})));
    v = p.input("w1");
    w = p.output(0);
  }
  CHECK(v.name == "w1");
  CHECK(w.name == "result");
}

TEST_CASE("tactics keep copies of the names that they are made of") {
  std::string axis = "B", input = "x", name = "one that is longer than small strings are",
              both = "all";
  const auto tactic = pt::manual(axis, {{input, 0}}, name);
  const auto renamed = pt::manual("M", {{"w1", 1}}).named(name);
  const auto steps = pt::microbatch(2, {{input, 0}}, name);
  const auto joined = pt::amalgamated(both, tactic, renamed);
  for (std::string* s : {&axis, &input, &name, &both}) s->assign(s->size(), '?');
  CHECK(tactic.name() == "one that is longer than small strings are");
  CHECK(renamed.name() == tactic.name());
  CHECK(joined.name() == "all");
  auto copied = tactic;
  {
    const auto other = pt::manual("M", {{"w1", 1}});
    copied = other;
    copied = tactic;
  }
  for (const auto& p : {pt::partition(traced(), mesh, pt::schedule(tactic)),
                        pt::partition(traced(), mesh, std::vector{copied})}) {
    CHECK(str(p.tactics[0].name) == str(tactic.name()));
    CHECK(p.input("x").local_shape == pt::shape{4, 8});
  }
  CHECK(str(pt::partition(traced(), mesh, pt::schedule(steps)).tactics[0].name) ==
        str(tactic.name()));
  CHECK(pt::partition(traced(), mesh, pt::schedule(joined)).input("w1").local_shape ==
        pt::shape{8, 8});
}

namespace {
/// Looks each name up once, in a tactic of its own, as a list of tactics does.
struct look_up {
  std::int64_t* compared;
  std::string_view name() const { return "look up"; }
  void apply(pt::tactic_context& c) const {
    std::vector<std::string> names;
    for (const auto& v : c.values()) names.emplace_back(v.name);
    for (const auto& n : names) {
      int found = 0;
      CHECK(c.for_each_selected(n, [&](const pt::named_value&) { ++found; }));
      CHECK(found == 1);
    }
    int below = 0, none = 0;
    c.for_each_selected("p", [&](const pt::named_value&) { ++below; });
    CHECK(below == static_cast<int>(names.size()) - 1);
    CHECK(!c.for_each_selected("p.", [&](const pt::named_value&) { ++none; }));
    CHECK(!c.for_each_selected("p.a1.", [&](const pt::named_value&) { ++none; }));
    CHECK(!c.for_each_selected("", [&](const pt::named_value&) { ++none; }));
    CHECK(none == 0);
    *compared = c.compared;
  }
};
std::int64_t compared_names(int n) {
  pt::builder b;
  pt::value_id sum = -1;
  for (int i = 0; i < n; ++i) {
    const auto v = pt::ops::parameter(b, "p.a" + std::to_string(i), {pt::dtype::f32, {4}});
    sum = i == 0 ? v : pt::ops::add(b, sum, v);
  }
  b.p.outputs.push_back({sum, b.p.intern("y")});
  std::int64_t compared = 0;
  (void)pt::partition(b.p, mesh, pt::schedule(look_up{&compared}));
  return compared;
}
}  // namespace

TEST_CASE("looking up names takes time that does not grow with the program") {
  CHECK(compared_names(4000) <= 2 * 2 * compared_names(2000));
  CHECK(compared_names(4000) < 40 * 4000);
}

TEST_CASE("S014 an input that cannot get another dimension") {
  const auto f =
      pt::trace([](auto x) { return sum(tanh(x)); }, pt::input<float, 8, 1, 1, 1, 1, 1, 1, 4>("x"));
  CHECK_THROWS_WITH_AS(
      pt::partition(f, mesh, pt::schedule(pt::microbatch(2, {{"x", 0}}))),
      "S014 microbatch(2): \"x\" has shape [8, 1, 1, 1, 1, 1, 1, 4]; its 2 slices are stacked "
      "along "
      "one more dimension, and a tensor has at most 8; merge two of its dimensions",
      pt::error);
  CHECK_NOTHROW(pt::partition(f, mesh, pt::schedule(pt::microbatch(1, {{"x", 0}}))));
}

#ifndef NDEBUG
TEST_CASE("an index out of bounds is an internal error") {
  pt::vec<int> list{1, 2, 3};
  list.pop_back();
  CHECK(list[1] == 2);
  CHECK_THROWS_WITH_AS(
      list[2], "internal error: index 2 is out of bounds for an array of size 2; please report",
      pt::index_error);
  CHECK_THROWS_WITH_AS(
      std::as_const(list)[-1],
      "internal error: index -1 is out of bounds for an array of size 2; please report",
      pt::index_error);
  list.clear();
  CHECK_THROWS_AS(list.back(), pt::index_error);
  CHECK_THROWS_AS(list.front(), pt::index_error);
}
#endif
