// An axis that is larger than a factor of a reshape is split in place (section 8 of PartIR, seed
// 000, asks the user to reshape the mesh).
#include <string>
#include <string_view>
#include <tuple>

#include "printed.hpp"

namespace {

constexpr auto rows = [](auto x, auto w) { return matmul(-pt::reshape<4, 4>(abs(x)), w); };
pt::program unfolding() {
  return pt::trace(rows, pt::input<float, 16>("x"), pt::input<float, 4, 8>("w"));
}

/// Checks that all ways to run the program agree, also with loops in sequence, and that its text
/// reads back.
void check_all(const pt::partitioned& p) {
  check_meaning(p);
  const auto x = data::arguments(p.source);
  CHECK(pt::equal(pt::temporal(p, x), pt::evaluate(p.source, x)));
  pt::mesh read;
  const pt::text printed = pt::print(p.device);
  const pt::program again = pt::parse(printed, read);
  CHECK_MESSAGE(!again.error, str(again.error.message));
  CHECK(str(pt::print(again, &read)) == str(printed));
  CHECK(read.devices() == p.mesh().devices());
}
std::string replaced(std::string in, std::string_view from, std::string_view to) {
  for (auto at = in.find(from); at != std::string::npos; at = in.find(from, at + to.size()))
    in.replace(at, from.size(), to);
  return in;
}

constexpr pt::mesh eight{{"A", 8}};
constexpr auto A = pt::manual("A", {{"x", 0}}, "A");

}  // namespace

TEST_CASE(
    "section 8: a reshape takes the part of the axis that fits, its next dimension the rest") {
  const auto p = pt::partition(unfolding(), eight, pt::schedule(A));
  CHECK(core(p) ==
        R"(func @main(%x: tensor<16xf32>, %w: tensor<4x8xf32>) attributes {mesh = {"A":8}} {
  %x4 = loop "A":(1)4 [#tile<0>] (%rA_1: range<4>) {
    %x4s = loop "A":(4)2 [#sum] (%rA_4: range<2>) {
      %xs = slice 0 %x[%rA_1] : tensor<4xf32>
      %xss = slice 0 %xs[%rA_4] : tensor<2xf32>
      %x1ss = abs(%xss) : tensor<2xf32>
      %x2ss = reshape(%x1ss) : tensor<1x2xf32>
      %x3ss = negate(%x2ss) : tensor<1x2xf32>
      %ws = slice 0 %w[%rA_4] : tensor<2x8xf32>
      %x4ss = matmul(%x3ss, %ws) : tensor<1x8xf32>
      yield %x4ss
    }
    yield %x4s
  } : tensor<4x8xf32>
  return %x4 : tensor<4x8xf32>
}
)");
  CHECK(local(p) ==
        R"(func @main(%x: tensor<2xf32>, %w: tensor<2x8xf32>) attributes {mesh = {"A":8}} {
  %x1 = abs(%x) : tensor<2xf32>
  %x2 = reshape(%x1) : tensor<1x2xf32>
  %x3 = negate(%x2) : tensor<1x2xf32>
  %x4 = matmul(%x3, %w) : tensor<1x8xf32>
  %x5 = all_reduce <"A":(4)2> %x4 : tensor<1x8xf32>
  return %x5 : tensor<1x8xf32>
}
)");
  check_all(p);
  // If an op slices only one dimension, the loops over both parts are one loop.
  CHECK(core(p, false).find(R"(  %x1 = loop "A" [#tile<0>] (%rA: range<8>) {
    %xs = slice 0 %x[%rA] : tensor<2xf32>
    %x1s = abs(%xs) : tensor<2xf32>
    yield %x1s
  } : tensor<16xf32>
  %x2 = loop "A":(1)4 [#tile<0>] (%rA_1: range<4>) {)") != std::string::npos);

  // The same with a mesh that the user has reshaped.
  const auto q =
      pt::partition(unfolding(), {{"A1", 4}, {"A2", 2}},
                    pt::schedule(pt::manual("A1", {{"x", 0}}), pt::manual("A2", {{"x", 0}})));
  const auto as_users = [](std::string s) {
    s = replaced(replaced(s, R"("A":(1)4)", R"("A1")"), R"("A":(4)2)", R"("A2")");
    s = replaced(replaced(s, "%rA_1", "%rA1"), "%rA_4", "%rA2");
    return replaced(s, R"({"A":8})", R"({"A1":4, "A2":2})");
  };
  CHECK(as_users(core(p)) == core(q));
  CHECK(as_users(local(p)) == local(q));
  CHECK(p.collectives == q.collectives);
  CHECK(p.cost.peak_bytes == q.cost.peak_bytes);
}

TEST_CASE("users see their own mesh: numbers, sizes, text") {
  const auto p = pt::partition(unfolding(), {{"A", 8}, {"B", 3}}, pt::schedule(A));
  CHECK(str(pt::concat(p.mesh())) == R"({"A":8, "B":3})");
  CHECK(p.mesh().rank == 3);
  CHECK(p.mesh().devices() == 24);
  CHECK(p.mesh().whole().rank == 2);
  CHECK(p.mesh().whole().size(0) == 8);
  CHECK(p.mesh().find("B") == 1);  // as the user numbers it; the minor part comes after
  CHECK(p.mesh().part(0) == pt::sub_axis{0, 1, 4});
  CHECK(p.mesh().part(2) == pt::sub_axis{0, 4, 2});
  CHECK(p.mesh().order[1] == 2);
  CHECK(p.input("x").sharding.dim_of(0) == 0);
  CHECK(p.input("w").sharding.dim_of(0) == -1);
  CHECK(p.input("w").sharding.dim_of(2) == 0);
  check_all(p);
  // A split mesh is as good as the original one.
  CHECK(local(pt::partition(unfolding(), p.mesh(), pt::schedule(A))) == local(p));
}

TEST_CASE("in reverse: a merge gets the parts from the uses of its result") {
  const auto f = pt::trace([](auto x, auto w) { return matmul(pt::reshape<2, 16>(-x), w); },
                           pt::input<float, 2, 4, 4>("x"), pt::input<float, 16, 8>("w"));
  const auto p = pt::partition(f, eight, pt::schedule(pt::manual("A", {{"w", 0}})));
  CHECK(local(p) ==
        R"(func @main(%x: tensor<2x1x2xf32>, %w: tensor<2x8xf32>) attributes {mesh = {"A":8}} {
  %x1 = negate(%x) : tensor<2x1x2xf32>
  %x2 = reshape(%x1) : tensor<2x2xf32>
  %x3 = matmul(%x2, %w) : tensor<2x8xf32>
  %x4 = all_reduce <"A"> %x3 : tensor<2x8xf32>
  return %x4 : tensor<2x8xf32>
}
)");
  CHECK(p.collectives == pt::collectives{.all_reduce = 1});  // over both parts
  check_all(p);
}

TEST_CASE("attention with more devices than heads: the rest of the axis shards keys") {
  // [batch, seq, heads, key] -> [batch, seq, heads * key], followed by the output projection.
  const auto f = pt::trace(
      [](auto q, auto k, auto v, auto wo) {
        const auto heads = [](auto x) {
          return pt::transpose<0, 2, 1, 3>(pt::reshape<2, 6, 4, 8>(x));
        };
        const auto scores = pt::nn::softmax(
            pt::dot_general<pt::axes<0, 1>, pt::axes<0, 1>, pt::axes<3>, pt::axes<3>>(heads(q),
                                                                                      heads(k)));
        const auto mixed =
            pt::dot_general<pt::axes<0, 1>, pt::axes<0, 1>, pt::axes<3>, pt::axes<2>>(scores,
                                                                                      heads(v));
        return matmul(pt::reshape<2, 6, 32>(pt::transpose<0, 2, 1, 3>(mixed)), wo);
      },
      pt::input<float, 2, 6, 32>("q"), pt::input<float, 2, 6, 32>("k"),
      pt::input<float, 2, 6, 32>("v"), pt::input<float, 32, 8>("wo"));
  const auto p = pt::partition(
      f, eight, pt::schedule(pt::manual("A", {{"q", 2}, {"k", 2}, {"v", 2}, {"wo", 0}})));
  const std::string text = local(p);
  // Scores are sums over the keys of a head; all other ops are local.
  CHECK_MESSAGE(text.find(R"(all_reduce <"A":(4)2>)") != std::string::npos, text);
  CHECK_MESSAGE(p.collectives == pt::collectives{.all_reduce = 2}, text);
  CHECK(p.core.conflicts.empty());
  const auto x = data::arguments(p.source);
  const auto expected = pt::evaluate(p.source, x);
  CHECK(pt::all_close(pt::emulate(p, x), expected));
  CHECK(pt::all_close(pt::temporal(p, x), expected));
}

TEST_CASE("three dimensions: two splits, or one split and a remainder that does not divide") {
  const auto f =
      pt::trace([](auto x) { return -(pt::reshape<2, 3, 4>(x)); }, pt::input<float, 24>("x"));
  const auto p = pt::partition(f, {{"A", 12}}, pt::schedule(A));
  CHECK(local(p) ==
        R"(func @main(%x: tensor<2xf32>) attributes {mesh = {"A":12}} {
  %x1 = reshape(%x) : tensor<1x1x2xf32>
  %x2 = negate(%x1) : tensor<1x1x2xf32>
  return %x2 : tensor<1x1x2xf32>
}
)");
  pt::text layout;
  pt::print_layout(layout, p.output(0).sharding, 3, p.mesh());
  CHECK(str(layout) == R"([{"A":(1)2}, {"A":(2)3}, {"A":(6)2}])");
  check_all(p);

  const auto q = pt::partition(f, eight, pt::schedule(A));
  CHECK(local(q) ==
        R"(func @main(%x: tensor<3xf32>) attributes {mesh = {"A":8}} {
  %xg = all_gather [{"A":(2)4}] %x : tensor<12xf32>
  %x1 = reshape(%xg) : tensor<1x3x4xf32>
  %x2 = negate(%x1) : tensor<1x3x4xf32>
  return %x2 : tensor<1x3x4xf32>
}
)");
  REQUIRE(q.core.conflicts.size() == 1);
  const pt::value_names names(q.core.p);
  CHECK(
      str(pt::describe_conflict(q.core, names, q.core.conflicts[0])) ==
      R"(%x1 (reshape) along "A":(2)4: the axis has size 4, which does not divide the 3 positions of #tile<1> from operand %x by tactic 1 ("A"))");
  CHECK(str(pt::settle(q, q.core.conflicts[0])) ==
        R"(would be settled by a size of "A":(2)4 that divides 3)");
  CHECK(
      str(pt::explain(q))
          .find(
              R"(all_gather <"A":(2)4>  %x  36 bytes  x1  A  reshape(%x) needs it unsharded: a conflict left it without a loop over "A":(2)4)") !=
      std::string::npos);
  CHECK(str(pt::print_replicated(q)).find(R"(along "A":(2)4)") != std::string::npos);
  check_all(q);
}

TEST_CASE("if no part divides, the conflict stays and the whole axis is gathered") {
  const auto f =
      pt::trace([](auto x) { return -(pt::reshape<3, 4>(x)); }, pt::input<float, 12>("x"));
  const auto p = pt::partition(f, {{"A", 4}}, pt::schedule(A));
  CHECK(p.mesh().rank == 1);
  CHECK(p.collectives == pt::collectives{.all_gather = 1});
  CHECK(local(p).find(R"(all_gather [{"A"}] %x)") != std::string::npos);
  check_all(p);
}

TEST_CASE("a tactic after a split means all parts of the axis") {
  const auto f = pt::trace(
      [](auto x, auto w, auto y) {
        return std::tuple{pt::output("v", rows(x, w)), pt::output("z", -y)};
      },
      pt::input<float, 16>("x"), pt::input<float, 4, 8>("w"), pt::input<float, 6, 8>("y"));
  const auto run = [&](auto... tactics) {
    return pt::partition(f, eight, pt::schedule(A, tactics...));
  };
  const auto layouts = [](const pt::partitioned& p) {
    pt::text out;
    for (const char* name : {"x", "w", "y"}) {
      const pt::sharded_value v = p.input(name);
      pt::print_layout(out, v.sharding, v.global_shape.rank, p.mesh());
      out << ' ';
    }
    return str(out);
  };
  const auto actions = [](const pt::partitioned& p) {
    return str(pt::print_actions(p.core, p.source));
  };
  const auto p = run(pt::manual("A", {{"y", 1}}), pt::manual("A", {{"x", 0}, {"y", 1}}));
  CHECK(layouts(p) == R"([{"A"}] [{"A":(4)2}, {}] [{}, {"A"}] )");
  CHECK(actions(p) == R"(tile<%x, 0, "A">; propagate;
tile<%y, 1, "A">; propagate;
propagate;
)");
  check_all(p);
  // Parts by name, also parts that exist already.
  const auto q = run(pt::manual("A:(1)4", {{"w", 1}}), pt::manual("A:(4)2", {{"w", 0}, {"y", 0}}));
  CHECK(layouts(q) == R"([{"A"}] [{"A":(4)2}, {"A":(1)4}] [{"A":(4)2}, {}] )");
  CHECK(actions(q) == R"(tile<%x, 0, "A">; propagate;
tile<%w, 1, "A":(1)4>; propagate;
tile<%y, 0, "A":(4)2>; propagate;
)");
  CHECK(local(q).find(R"(all_gather [{}, {"A":(1)4}] %w)") != std::string::npos);
  check_all(q);
  // A part of a part; replicated and first_divisible_dim along parts.
  const auto r = run(pt::manual("A:(2)2", {{"y", 0}}),
                     pt::manual("A:(1)2", {{"y", pt::replicated}, {"w", pt::first_divisible_dim}}),
                     pt::manual("A:(4)2", {{"y", pt::first_divisible_dim}}));
  CHECK(layouts(r) == R"([{"A"}] [{"A":(4)2, "A":(1)2}, {}] [{"A":(2)2}, {"A":(4)2}] )");
  CHECK(r.mesh().rank == 3);
  check_all(r);
  // Only some parts of the axis are free for the dimension.
  CHECK_THROWS_WITH_AS(
      run(pt::manual("A", {{"w", 1}})),
      R"(S004 tile: "w" is already sliced on dimension 0 along axis "A":(4)2, by propagation in tactic 1 ("A"); it cannot be sliced on dimension 1 too; put this tactic before that one, or give the mesh another axis)",
      pt::error);
  CHECK_THROWS_WITH_AS(
      run(pt::manual("A", {{"w", 0}})),
      R"(S003 tile: dimension 0 of "w" has size 2 (4 before earlier tiling); axis "A":(1)4 has size 4, which does not divide it; take "A:(1)2", choose another dimension or mesh, or pad it with uneven::pad)",
      pt::error);
  CHECK_THROWS_WITH_AS(
      run(pt::manual("A", {{"w", pt::replicated}})),
      R"(S005 atomic: "w" is already sliced on dimension 0 along axis "A":(4)2, by propagation in tactic 1 ("A"); no action undoes an earlier one; put this tactic before that one)",
      pt::error);
}

TEST_CASE("a sub-axis by name, without a reshape") {
  const auto f = pt::trace([](auto x, auto w) { return matmul(x, w); }, pt::input<float, 8, 8>("x"),
                           pt::input<float, 8, 4>("w"));
  const auto p = pt::partition(
      f, eight, pt::schedule(pt::manual("A:(1)4", {{"x", 0}}), pt::manual("A:(4)2", {{"w", 1}})));
  CHECK(local(p) ==
        R"(func @main(%x: tensor<2x8xf32>, %w: tensor<8x2xf32>) attributes {mesh = {"A":8}} {
  %x1 = matmul(%x, %w) : tensor<2x2xf32>
  return %x1 : tensor<2x2xf32>
}
)");
  check_all(p);
  // The same parts on one dimension, by two tactics or by one.
  const auto twice = pt::partition(
      f, eight, pt::schedule(pt::manual("A:(1)4", {{"x", 0}}), pt::manual("A:(4)2", {{"x", 0}})));
  const auto once = pt::partition(f, eight, pt::schedule(A));
  CHECK(local(twice) == local(once));
  CHECK(core(twice) == core(once));
  // A part of size one slices nothing.
  const auto none = pt::partition(f, eight, pt::schedule(pt::manual("A:(8)1", {{"x", 0}})));
  CHECK(none.mesh().rank == 1);
  CHECK(none.collectives.total() == 0);
  const auto inner = pt::partition(f, eight, pt::schedule(pt::manual("A:(2)1", {{"x", 0}})));
  CHECK(core(inner) == core(none));
  CHECK(inner.core.actions.size() == 1);

  CHECK(str(pt::diff(once, p)) == R"(schedule: A -> manual, manual
bytes read and written: 176 -> 144
argument bytes: 160 -> 128
peak bytes: 176 -> 144
input "x": [{"A"}, {}] tensor<1x8xf32> -> [{"A":(1)4}, {}] tensor<2x8xf32>
input "w": [{}, {}] tensor<8x4xf32> -> [{}, {"A":(4)2}] tensor<8x2xf32>
output "result": [{"A"}, {}] tensor<1x4xf32> -> [{"A":(1)4}, {"A":(4)2}] tensor<2x2xf32>
)");
}

TEST_CASE("invalid sub-axes are refused") {
  const auto f = pt::trace([](auto x) { return -x; }, pt::input<float, 24, 24>("x"));
  const auto message = [&](auto... tactics) -> std::string {
    try {
      pt::partition(f, {{"A", 12}, {"B", 2}}, pt::schedule(tactics...));
    } catch (const pt::error& e) {
      return e.what();
    }
    return "";
  };
  const auto of = [&](std::string_view axis) { return message(pt::manual(axis, {{"x", 0}})); };
  CHECK(of("C:(1)2") == R"(S001 tactic: the mesh has no axis "C"; known: A, B; did you mean "A"?)");
  CHECK(
      of("A:4") ==
      R"(S021 tactic: "A:4" is not a sub-axis of axis "A", which has size 12; "A:(pre)size" is needed, both at least 1, pre x size a divisor of 12)");
  for (const char* bad :
       {"A:", "A:()4", "A:(1)", "A:(1)4 ", "A:(0)4", "A:(1)0", "A:(-1)4", "A:(1)-2"})
    CHECK_MESSAGE(of(bad).substr(0, 4) == "S021", bad);
  CHECK(
      of("A:(1)5") ==
      R"(S022 tactic: sub-axis "A:(1)5": axis "A" has size 12, which 1 x 5 does not divide; after (1) a size of 1, 2, 3, 4, 6 or 12 is possible)");
  CHECK(
      of("A:(4)2") ==
      R"(S022 tactic: sub-axis "A:(4)2": axis "A" has size 12, which 4 x 2 does not divide; after (4) a size of 1 or 3 is possible)");
  CHECK(
      of("A:(5)2") ==
      R"(S022 tactic: sub-axis "A:(5)2": axis "A" has size 12, which 5 does not divide; pre can be 1, 2, 3, 4, 6 or 12)");
  CHECK(
      message(pt::manual("A:(1)4", {{"x", 0}}), pt::manual("A:(1)6", {{"x", 1}})) ==
      R"(S023 tactic: sub-axis "A":(1)6 overlaps "A":(4)3, a part into which axis "A" of size 12 is split already; name it in an earlier tactic, or parts of "A":(4)3)");

  const auto g = pt::trace([](auto x) { return -x; }, pt::input<float, 1024>("x"));
  const auto many = [&] {
    return pt::partition(
        g, {{"A", 1024}, {"B", 1}, {"C", 1}, {"D", 1}, {"E", 1}, {"F", 1}, {"G", 1}},
        pt::schedule(pt::manual("A:(1)2", {{"x", 0}}), pt::manual("A:(4)2", {{"x", 0}})));
  };
  CHECK_THROWS_WITH_AS(
      many(),
      R"(S023 tactic: sub-axis "A":(4)2 would be part number 9 of mesh {"A":1024, "B":1, "C":1, "D":1, "E":1, "F":1, "G":1}; axes can be split into 8 parts in all)",
      pt::error);

  // Read back from a log.
  const auto p = pt::partition(f, {{"A", 12}}, pt::schedule(pt::manual("A:(2)3", {{"x", 0}})));
  pt::core_program c(p.source, p.mesh());
  CHECK(str(pt::replay(c, p.source, "tile<%x, 0, \"A\":(5)3>;").message).substr(0, 12) ==
        "S022 replay:");
  check_all(p);
}

TEST_CASE("no axis is left to split, so the conflict stays") {
  const pt::mesh full{{"A", 8}, {"B", 1}, {"C", 1}, {"D", 1},
                      {"E", 1}, {"F", 1}, {"G", 1}, {"H", 1}};
  const auto p = pt::partition(unfolding(), full, pt::schedule(A));
  CHECK(p.mesh().rank == 8);
  CHECK(p.core.conflicts.size() == 1);
  CHECK(p.collectives == pt::collectives{.all_gather = 1});
  check_all(p);
}

TEST_CASE("conflicts of a tactic keep their part when a later one splits the axis again") {
  const auto f = pt::trace(
      [](auto x, auto y) {
        return std::tuple{pt::output("v", -(pt::reshape<2, 3, 4>(x))),
                          pt::output("z", pt::reshape<4, 3>(y))};
      },
      pt::input<float, 24>("x"), pt::input<float, 12>("y"));
  const auto p =
      pt::partition(f, {{"A", 8}}, pt::schedule(A, pt::manual("A:(2)2", {{"y", 0}}, "part")));
  const std::string words = str(pt::report(p));
  CHECK_MESSAGE(
      words.find(R"(%x1 (reshape) along "A":(2)4: the axis has size 4)") != std::string::npos,
      words);
  check_all(p);
}

TEST_CASE("microbatches have no parts: a batch that they do not divide is refused") {
  const auto f =
      pt::trace([](auto x) { return -(pt::reshape<4, 4>(x)); }, pt::input<float, 16>("x"));
  CHECK_THROWS_AS(pt::partition(f, eight, pt::schedule(pt::microbatch(8, {{"x", 0}}))), pt::error);
  const auto p = pt::partition(f, eight, pt::schedule(pt::microbatch(2, {{"x", 0}}), A));
  const auto x = data::arguments(p.source);
  CHECK(pt::equal(pt::emulate(p, x), pt::evaluate(p.source, x)));
}

TEST_CASE("sub-axes inside and around loops") {
  const auto f = pt::trace(
      [](auto x, auto w) {
        return pt::for_loop(
            0, 3,
            [&](auto, auto h) { return pt::reshape<16>(matmul(abs(pt::reshape<4, 4>(h)), w)); }, x);
      },
      pt::input<float, 16>("x"), pt::input<float, 4, 4>("w"));
  const auto p = pt::partition(f, eight, pt::schedule(A));
  CHECK(p.mesh().rank == 2);
  CHECK_MESSAGE(local(p).find(R"("A":(4)2)") != std::string::npos, local(p));
  check_all(p);
}

TEST_CASE("device programs with sub-axes are parsed, invalid ones are refused") {
  const auto p = pt::partition(unfolding(), {{"B", 3}, {"A", 8}}, pt::schedule(A));
  const std::string good = local(p);
  const auto read = [&](std::string_view part) {
    pt::mesh m;
    const pt::program q = pt::parse(replaced(good, R"("A":(4)2)", part), m);
    return q.error ? str(q.error.message).substr(0, 4) : str(pt::print(q, &m));
  };
  CHECK(read(R"("A":(4)2)") == good);
  CHECK(read(R"("A":(2)4)") == replaced(good, "(4)2", "(2)4"));
  CHECK(read(R"("A":(1)8)") == replaced(good, R"("A":(4)2)", R"("A")"));
  CHECK(read(R"("A":(1)2, "A":(4)2)") == replaced(good, R"("A":(4)2)", R"("A":(1)2, "A":(4)2)"));
  CHECK(read(R"("A":(1)2, "A":(2)2)") == replaced(good, R"("A":(4)2)", R"("A":(1)4)"));
  for (const char* bad :
       {R"("A":(4)3)", R"("A":(3)2)", R"("A":(0)2)", R"("A":(4)0)", R"("A":(4))", R"("A":4)",
        R"("A":(4)2x)", R"("C":(4)2)", R"("A":(1)4, "A":(2)4)", R"("A":(99999999999999999999)2)"})
    CHECK_MESSAGE(read(bad) == "P011", bad);

  // Two splits of one axis that do not fit together are not a mesh.
  const std::string twelve = R"(func @main(%x: tensor<4xf32>) attributes {mesh = {"A":12}} {
  %x1 = all_reduce <"A":(1)4> %x : tensor<4xf32>
  %x2 = all_reduce <"A":(1)6> %x1 : tensor<4xf32>
  return %x2 : tensor<4xf32>
}
)";
  pt::mesh m;
  CHECK(str(pt::parse(twelve, m).error.message).substr(0, 4) == "P011");
  CHECK(!pt::parse(replaced(twelve, "(1)6", "(4)3"), m).error);
}
