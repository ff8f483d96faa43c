// Uneven dimensions: the padded programs as text.
#include "printed.hpp"

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP", pt::uneven::pad);
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP", pt::uneven::pad);

}  // namespace

TEST_CASE("uneven: products of padded rows and columns are masked where they are contracted") {
  const auto source = pt::trace([](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); },
                                pt::input<float, 10, 8>("x"), pt::input<float, 8, 15>("w1"),
                                pt::input<float, 15, 8>("w2"));
  const auto p = pt::partition(source, mesh, pt::schedule(BP, MP));
  CHECK(str(pt::print_actions(p.core, source)) ==
        "tile<%x, 0, \"B\", pad>; propagate;\ntile<%w1, 1, \"M\", pad>; propagate;\n");
  CHECK(
      core(p) ==
      R"(func @main(%x: tensor<12x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x3 = loop "M" [#tile<0>] (%rM: range<2>) {
    %x3s = iota {dim=0} : tensor<8xi32>
    yield %x3s
  } : tensor<16xi32>
  %x4 = constant {15} : tensor<i32>
  %x5 = loop "M" [#tile<0>] (%rM: range<2>) {
    %x3s = slice 0 %x3[%rM] : tensor<8xi32>
    %x5s = compare(%x3s, %x4) {lt} : tensor<8xi1>
    yield %x5s
  } : tensor<16xi1>
  %x9 = loop "M" [#tile<0>] (%rM: range<2>) {
    %x9s = broadcast_in_dim(%x5s) {dims=[0]} : tensor<8x8xi1>
    yield %x9s
  } : tensor<16x8xi1>
  %x10 = constant {0} : tensor<f32>
  %x11 = loop "M" [#tile<0>] (%rM: range<2>) {
    %x9s = slice 0 %x9[%rM] : tensor<8x8xi1>
    %w2s = slice 0 %w2[%rM] : tensor<8x8xf32>
    %x11s = select(%x9s, %w2s, %x10) : tensor<8x8xf32>
    yield %x11s
  } : tensor<16x8xf32>
  %x1, %x6 = loop "B" [#tile<0>, #tile<0>] (%rB: range<4>) {
    %x1s, %x6s = loop "M" [#tile<1>, #tile<1>] (%rM: range<2>) {
      %xs = slice 0 %x[%rB] : tensor<3x8xf32>
      %w1s = slice 1 %w1[%rM] : tensor<8x8xf32>
      %x1ss = matmul(%xs, %w1s) : tensor<3x8xf32>
      %x5s = slice 0 %x5[%rM] : tensor<8xi1>
      %x6ss = broadcast_in_dim(%x5s) {dims=[1]} : tensor<3x8xi1>
      yield %x1ss, %x6ss
    }
    yield %x1s, %x6s
  } : tensor<12x16xf32>, tensor<12x16xi1>
  %x7 = constant {0} : tensor<f32>
  %x2 = loop "B" [#tile<0>] (%rB: range<4>) {
    %x2s = loop "M" [#sum] (%rM: range<2>) {
      %x6s = slice 0 %x6[%rB] : tensor<3x16xi1>
      %x6ss = slice 1 %x6s[%rM] : tensor<3x8xi1>
      %x1s = slice 0 %x1[%rB] : tensor<3x16xf32>
      %x1ss = slice 1 %x1s[%rM] : tensor<3x8xf32>
      %x8ss = select(%x6ss, %x1ss, %x7) : tensor<3x8xf32>
      %x11s = slice 0 %x11[%rM] : tensor<8x8xf32>
      %x2ss = matmul(%x8ss, %x11s) : tensor<3x8xf32>
      yield %x2ss
    }
    yield %x2s
  } : tensor<12x8xf32>
  return %x2 : tensor<12x8xf32>
}
)");
  CHECK(
      local(p) ==
      R"(func @main(%x: tensor<3x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = iota {dim=0} : tensor<8xi32>
  %x2 = shard_start {8 <"M">} : tensor<i32>
  %x3 = add(%x1, %x2) : tensor<8xi32>
  %x4 = constant {15} : tensor<i32>
  %x5 = compare(%x3, %x4) {lt} : tensor<8xi1>
  %x6 = broadcast_in_dim(%x5) {dims=[0]} : tensor<8x8xi1>
  %x7 = constant {0} : tensor<f32>
  %x8 = select(%x6, %w2, %x7) : tensor<8x8xf32>
  %x9 = matmul(%x, %w1) : tensor<3x8xf32>
  %x10 = broadcast_in_dim(%x5) {dims=[1]} : tensor<3x8xi1>
  %x11 = constant {0} : tensor<f32>
  %x12 = select(%x10, %x9, %x11) : tensor<3x8xf32>
  %x13 = matmul(%x12, %x8) : tensor<3x8xf32>
  %x14 = all_reduce <"M"> %x13 : tensor<3x8xf32>
  return %x14 : tensor<3x8xf32>
}
)");
  CHECK(str(pt::report(p)).find("x [{\"B\"}, {}] : tensor<10x8xf32> -> tensor<3x8xf32>") !=
        std::string::npos);
  check_meaning(p);
}

TEST_CASE("uneven: a sort reads the true size and its result is padded") {
  const auto source =
      pt::trace([](auto x) { return pt::sort<0>(x) + x; }, pt::input<float, 10, 6>("x"));
  const auto p = pt::partition(source, mesh, pt::schedule(BP));
  CHECK(core(p) ==
        R"(func @main(%x: tensor<12x6xf32>) attributes {mesh = {"B":4, "M":2}} {
  %xt = loop "B" [#tile<0>] (%rB: range<4>) {
    %xs = slice 0 %x[%rB] : tensor<3x6xf32>
    yield %xs
  } : tensor<12x6xf32>
  %x5 = slice(%xt) {[0:10, :]} : tensor<10x6xf32>
  %x1 = sort(%x5) {dim=0} : tensor<10x6xf32>
  %x3 = constant {0} : tensor<f32>
  %x4 = pad(%x1, %x3) {low=[0, 0], high=[2, 0]} : tensor<12x6xf32>
  %x2 = loop "B" [#tile<0>] (%rB: range<4>) {
    %x4s = slice 0 %x4[%rB] : tensor<3x6xf32>
    %xs = slice 0 %xt[%rB] : tensor<3x6xf32>
    %x2s = add(%x4s, %xs) : tensor<3x6xf32>
    yield %x2s
  } : tensor<12x6xf32>
  return %x2 : tensor<12x6xf32>
}
)");
  CHECK(local(p) ==
        R"(func @main(%x: tensor<3x6xf32>) attributes {mesh = {"B":4, "M":2}} {
  %xg = all_gather [{"B"}, {}] %x : tensor<12x6xf32>
  %x1 = slice(%xg) {[0:10, :]} : tensor<10x6xf32>
  %x2 = sort(%x1) {dim=0} : tensor<10x6xf32>
  %x3 = constant {0} : tensor<f32>
  %x4 = pad(%x2, %x3) {low=[0, 0], high=[2, 0]} : tensor<12x6xf32>
  %x4s = all_slice [{"B"}, {}] %x4 : tensor<3x6xf32>
  %x5 = add(%x4s, %x) : tensor<3x6xf32>
  return %x5 : tensor<3x6xf32>
}
)");
  CHECK(
      str(pt::explain(p)).substr(0, 94) ==
      R"(all_gather <"B">  %x  216 bytes  x1  BP  sort(%x) needs it unsharded: it has no loop over "B"
)");
  check_meaning(p);
}

TEST_CASE("uneven: the list of values replicated by default omits the masks") {
  const auto source =
      pt::trace([](auto x) { return pt::sum<0>(x * 2); }, pt::input<float, 10, 6>("x"));
  const auto p = pt::partition(source, mesh, pt::schedule(BP));
  std::string names;
  for (const auto& each : pt::replicated(p))
    names += str(p.core.describe(each.value)) + " " + str(pt::concat(each.bytes)) + "; ";
  CHECK(names == "x 72; %2 72; result 24; %1 4; ");
}

TEST_CASE("uneven: the suggested tactic that settles a conflict pads, too") {
  const auto source = pt::trace([](auto x, auto w) { return matmul(x, w); },
                                pt::input<float, 10, 8>("x"), pt::input<float, 8, 15>("w"));
  const auto both = pt::manual("B", {{"x", 0}, {"w", 1}}, "both", pt::uneven::pad);
  const auto p = pt::partition(source, mesh, pt::schedule(data::unsettled(both)));
  REQUIRE(p.core.conflicts.size() == 1);
  CHECK(
      str(pt::settle(p, p.core.conflicts[0])) ==
      R"(would be settled by manual("B", {{"x", 0}}, uneven::pad) as an earlier tactic (#tile<0>), or by manual("B", {{"w", 1}}, uneven::pad) as an earlier tactic (#tile<1>))");
  check_meaning(p);
}

TEST_CASE("uneven: sums are finished after the padding, in the same number as with even sizes") {
  const auto step = [](std::int64_t vocabulary, std::int64_t batch, bool tied) {
    const pt::tensor<float, pt::dyn, pt::dyn> table(vocabulary, 8);
    const pt::tensor<std::int32_t, pt::dyn> tokens(batch);
    const auto source = pt::trace(
        [&](auto table, auto tokens) {
          const auto loss = [&](auto table) {
            const auto x = pt::nn::embedding(table, tokens);
            const auto y = pt::einsum<"bd,vd->bv">(x, table);
            return tied ? pt::sum(y * y) : pt::sum(x * x);
          };
          return pt::output("table", table - pt::grad(loss, table));
        },
        pt::input("table", table), pt::input("tokens", tokens));
    const auto p =
        pt::partition(source, mesh,
                      pt::schedule(pt::manual("B", {{"tokens", 0}}, "BP", pt::uneven::pad),
                                   pt::manual("B", {{"table", 0}}, "Z3", pt::uneven::pad)));
    check_meaning(p);
    return p;
  };
  for (bool tied : {false, true})
    CHECK(step(15, 10, tied).collectives == step(16, 12, tied).collectives);
  const auto p = step(15, 10, false);
  CHECK(
      local(p) ==
      R"(func @main(%table: tensor<4x8xf32>, %tokens: tensor<3xi32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = iota {dim=0} : tensor<3xi32>
  %x2 = shard_start {3 <"B">} : tensor<i32>
  %x3 = add(%x1, %x2) : tensor<3xi32>
  %x4 = constant {10} : tensor<i32>
  %x5 = compare(%x3, %x4) {lt} : tensor<3xi1>
  %x6 = constant {14} : tensor<i32>
  %x7 = minimum(%tokens, %x6) : tensor<3xi32>
  %x8 = constant {0} : tensor<i32>
  %x9 = maximum(%x7, %x8) : tensor<3xi32>
  %x10 = constant {0} : tensor<i32>
  %x11 = select(%x5, %x9, %x10) : tensor<3xi32>
  %x12 = constant {1} : tensor<f32>
  %x13 = broadcast_in_dim(%x12) {dims=[]} : tensor<3x8xf32>
  %tableg = all_gather [{"B"}, {}] %table : tensor<16x8xf32>
  %x14 = slice(%tableg) {[0:15, :]} : tensor<15x8xf32>
  %x15 = gather(%x14, %tokens) : tensor<3x8xf32>
  %x16 = multiply(%x13, %x15) : tensor<3x8xf32>
  %x17 = multiply(%x13, %x15) : tensor<3x8xf32>
  %x18 = add(%x16, %x17) : tensor<3x8xf32>
  %x19 = broadcast_in_dim(%x5) {dims=[0]} : tensor<3x8xi1>
  %x20 = constant {0} : tensor<f32>
  %x21 = select(%x19, %x18, %x20) : tensor<3x8xf32>
  %x22 = scatter(%x11, %x21) {add} : tensor<15x8xf32>
  %x23 = constant {0} : tensor<f32>
  %x24 = pad(%x22, %x23) {low=[0, 0], high=[1, 0]} : tensor<16x8xf32>
  %x25 = reduce_scatter [{"B"}, {}] %x24 : tensor<4x8xf32>
  %table' = subtract(%table, %x25) : tensor<4x8xf32>
  return %table' : tensor<4x8xf32>
}
)");
  CHECK(
      str(pt::explain(p)) ==
      R"(all_gather <"B">      %table  384 bytes  x1  Z3  gather(%table, %tokens) in embedding needs it unsharded: its loop over "B" does not slice it
reduce_scatter <"B">  %x11    384 bytes  x1  BP  scatter(%x4, %x10) in the gradient of embedding leaves a sum over "B", which its uses slice (backward of gather(%table, %tokens))
in all:
  all_gather      x1  384 bytes
  all_reduce      x0    0 bytes
  reduce_scatter  x1  384 bytes
  all_to_all      x0    0 bytes
  all             x2  768 bytes
messages along "B" 6
)");
}

TEST_CASE("uneven: operands in their true size and their results have the source's names") {
  const auto source =
      pt::trace([](auto x) { return abs(pt::sort<0>(x * 2)); }, pt::input<float, 10, 6>("x"));
  const auto p = pt::partition(source, mesh, pt::schedule(BP));
  CHECK(str(pt::print_replicated(p)) ==
        R"(240 bytes  x 8 copies  %x2  slice      tensor<10x6xf32>  along "B", "M"
240 bytes  x 8 copies  %x3  sort       tensor<10x6xf32>  along "B", "M"
240 bytes  x 8 copies  %x4  abs        tensor<10x6xf32>  along "B", "M"
 72 bytes  x 2 copies  %x   parameter  tensor<12x6xf32>  along "M"
 72 bytes  x 2 copies  %x2  multiply   tensor<12x6xf32>  along "M"
  4 bytes  x 8 copies  %x1  constant   tensor<f32>       along "B", "M"
replicated by default: 868 bytes on one device, in 6 values
)");
  CHECK_THROWS_WITH_AS(
      pt::partition(source, mesh, pt::schedule(BP), {.strict = 100}),
      "S020 strict: %x2 tensor<10x6xf32> is replicated along \"B\", \"M\" by default: 8 copies of "
      "240 "
      "bytes, where 100 bytes are allowed, and 2 more values are; shard it, or place it "
      "pt::replicated",
      pt::error);
  check_meaning(p);
}

TEST_CASE("uneven: without the pass cancel, collectives of masks are explained") {
  const auto source =
      pt::trace([](auto x) { return pt::sum<0>(x * 2); }, pt::input<float, 10, 6>("x"));
  const auto p = pt::partition(source, mesh, pt::schedule(BP), {.passes = {.cancel = false}});
  CHECK(
      str(pt::explain(p)).substr(0, 130) ==
      R"(all_gather <"B">  mask   36 bytes  x1  BP  the mask of a padding needs it in another layout: its loop over "B" slices dimension 0
)");
  check_meaning(p);
}
