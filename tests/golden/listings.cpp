// The listings of PartIR (seed 000), as printed text and as computed values.
#include "printed.hpp"

namespace {

constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };
constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");

pt::program chain() {
  return pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                   pt::input<float, 16, 8>("w2"));
}
/// Section 6.1: the chain, and its argument added to its result.
pt::program residual() {
  return pt::trace([](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2) + x; },
                   pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                   pt::input<float, 16, 8>("w2"));
}

}  // namespace

TEST_CASE("listing 2: an unpartitioned matmul chain") {
  CHECK(str(pt::print(chain())) ==
        R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) {
  %x1 = matmul(%x, %w1) : tensor<256x16xf32>
  %x2 = matmul(%x1, %w2) : tensor<256x8xf32>
  return %x2 : tensor<256x8xf32>
}
)");
}

TEST_CASE("listing 3: data-parallel matmul chain") {
  const auto p = pt::partition(chain(), mesh, pt::schedule(BP));
  CHECK(
      local(p) ==
      R"(func @main(%x: tensor<64x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = matmul(%x, %w1) : tensor<64x16xf32>
  %x2 = matmul(%x1, %w2) : tensor<64x8xf32>
  return %x2 : tensor<64x8xf32>
}
)");
  check_meaning(p);
}

TEST_CASE("listing 4: data-parallel and sharded matmul chain") {
  const auto p = pt::partition(chain(), mesh, pt::schedule(BP, MP));
  CHECK(
      local(p) ==
      R"(func @main(%x: tensor<64x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = matmul(%x, %w1) : tensor<64x8xf32>
  %x2 = matmul(%x1, %w2) : tensor<64x8xf32>
  %x3 = all_reduce <"M"> %x2 : tensor<64x8xf32>
  return %x3 : tensor<64x8xf32>
}
)");
  check_meaning(p);
}

TEST_CASE("listing 5: data-parallel and fully sharded matmul chain, by the schedule of listing 6") {
  const auto p = pt::partition(chain(), mesh, pt::schedule(BP, MP, Z3));
  CHECK(
      local(p) ==
      R"(func @main(%x: tensor<64x8xf32>, %w1: tensor<2x8xf32>, %w2: tensor<8x2xf32>) attributes {mesh = {"B":4, "M":2}} {
  %w1g = all_gather [{"B"}, {}] %w1 : tensor<8x8xf32>
  %x1 = matmul(%x, %w1g) : tensor<64x8xf32>
  %w2g = all_gather [{}, {"B"}] %w2 : tensor<8x8xf32>
  %x2 = matmul(%x1, %w2g) : tensor<64x8xf32>
  %x3 = all_reduce <"M"> %x2 : tensor<64x8xf32>
  return %x3 : tensor<64x8xf32>
}
)");
  check_meaning(p);
}

TEST_CASE("section 2.3: sharding the activations on M too turns all_reduce into reduce_scatter") {
  constexpr auto ES = pt::manual("M", {{"x", 1}, {"result", 1}}, "ES");
  const auto p = pt::partition(chain(), mesh, pt::schedule(BP, MP, ES));
  CHECK(
      local(p) ==
      R"(func @main(%x: tensor<64x4xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %xg = all_gather [{}, {"M"}] %x : tensor<64x8xf32>
  %x1 = matmul(%xg, %w1) : tensor<64x8xf32>
  %x2 = matmul(%x1, %w2) : tensor<64x8xf32>
  %x3 = reduce_scatter [{}, {"M"}] %x2 : tensor<64x4xf32>
  return %x3 : tensor<64x4xf32>
}
)");
  check_meaning(p);
}

TEST_CASE("section 3: the schedule has seven actions") {
  const auto p = pt::partition(chain(), mesh, pt::schedule(BP, MP, Z3));
  CHECK(p.core.actions.size() == 7);
  CHECK(str(pt::print_actions(p.core, p.source)) == R"(tile<%x, 0, "B">; propagate;
tile<%w1, 1, "M">; propagate;
tile<%w1, 0, "B">; tile<%w2, 1, "B">; propagate;
)");
  // The text of the paper, apart from its comments, replays too.
  pt::core_program c(p.source, mesh);
  CHECK(!pt::replay(c, p.source,
                    "tile<%x, 0, \"B\">; propagate;\n"
                    "tile<%w1, 1, \"M\">; propagate;\n"
                    "tile<%w1, 0, \"B\">; tile<%w2, 1, \"B\">; propagate;"));
  CHECK(str(pt::print_core(c)) == core(p));
}

TEST_CASE("section 5.1: value tiling on its own") {
  const pt::program source = chain();
  pt::core_program c(source, mesh);
  CHECK(!c.tile(source.inputs[0], 0, 0));
  CHECK(
      str(pt::print_core(c)) ==
      R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %xt = loop "B" [#tile<0>] (%rB: range<4>) {
    %xs = slice 0 %x[%rB] : tensor<64x8xf32>
    yield %xs
  } : tensor<256x8xf32>
  %x1 = matmul(%xt, %w1) : tensor<256x16xf32>
  %x2 = matmul(%x1, %w2) : tensor<256x8xf32>
  return %x2 : tensor<256x8xf32>
}
)");
}

TEST_CASE("section 5.2.2: propagation forward and backward from an inner value, and its fusion") {
  const pt::program source = chain();
  pt::core_program c(source, mesh);
  const pt::value_id x1 = source.op(3).result;
  CHECK(!c.tile(x1, 0, 0));
  CHECK(
      str(pt::print_core(c)) ==
      R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = matmul(%x, %w1) : tensor<256x16xf32>
  %x1t = loop "B" [#tile<0>] (%rB: range<4>) {
    %x1s = slice 0 %x1[%rB] : tensor<64x16xf32>
    %x1ts = %x1s : tensor<64x16xf32>
    yield %x1ts
  } : tensor<256x16xf32>
  %x2 = matmul(%x1t, %w2) : tensor<256x8xf32>
  return %x2 : tensor<256x8xf32>
}
)");
  c.propagate();
  CHECK(
      str(pt::print_core(c, false)) ==
      R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = loop "B" [#tile<0>] (%rB: range<4>) {
    %xs = slice 0 %x[%rB] : tensor<64x8xf32>
    %x1s = matmul(%xs, %w1) : tensor<64x16xf32>
    yield %x1s
  } : tensor<256x16xf32>
  %x1t = loop "B" [#tile<0>] (%rB: range<4>) {
    %x1s = slice 0 %x1[%rB] : tensor<64x16xf32>
    %x1ts = %x1s : tensor<64x16xf32>
    yield %x1ts
  } : tensor<256x16xf32>
  %x2 = loop "B" [#tile<0>] (%rB: range<4>) {
    %x1ts = slice 0 %x1t[%rB] : tensor<64x16xf32>
    %x2s = matmul(%x1ts, %w2) : tensor<64x8xf32>
    yield %x2s
  } : tensor<256x8xf32>
  return %x2 : tensor<256x8xf32>
}
)");
  // After fusion the value tiling is only another name.
  CHECK(
      str(pt::print_core(c)) ==
      R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x2 = loop "B" [#tile<0>] (%rB: range<4>) {
    %xs = slice 0 %x[%rB] : tensor<64x8xf32>
    %x1s = matmul(%xs, %w1) : tensor<64x16xf32>
    %x1ts = %x1s : tensor<64x16xf32>
    %x2s = matmul(%x1ts, %w2) : tensor<64x8xf32>
    yield %x2s
  } : tensor<256x8xf32>
  return %x2 : tensor<256x8xf32>
}
)");
}

TEST_CASE("listing 8: chained matrix multiplication with a tiling loop") {
  const auto p = pt::partition(chain(), mesh, pt::schedule(BP));
  CHECK(
      core(p) ==
      R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x2 = loop "B" [#tile<0>] (%rB: range<4>) {
    %xs = slice 0 %x[%rB] : tensor<64x8xf32>
    %x1s = matmul(%xs, %w1) : tensor<64x16xf32>
    %x2s = matmul(%x1s, %w2) : tensor<64x8xf32>
    yield %x2s
  } : tensor<256x8xf32>
  return %x2 : tensor<256x8xf32>
}
)");
}

TEST_CASE("section 5.2.2: inference from value-tiling w2 slices w1 and the inner value") {
  constexpr auto W2 = pt::manual("M", {{"w2", 0}});
  const auto p = pt::partition(chain(), mesh, pt::schedule(BP, W2));
  CHECK(
      core(p) ==
      R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x2 = loop "B" [#tile<0>] (%rB: range<4>) {
    %x2s = loop "M" [#sum] (%rM: range<2>) {
      %xs = slice 0 %x[%rB] : tensor<64x8xf32>
      %w1s = slice 1 %w1[%rM] : tensor<8x8xf32>
      %x1ss = matmul(%xs, %w1s) : tensor<64x8xf32>
      %w2s = slice 0 %w2[%rM] : tensor<8x8xf32>
      %x2ss = matmul(%x1ss, %w2s) : tensor<64x8xf32>
      yield %x2ss
    }
    yield %x2s
  } : tensor<256x8xf32>
  return %x2 : tensor<256x8xf32>
}
)");
  // Tiling w1 or w2 is the same strategy.
  CHECK(core(p) == core(pt::partition(chain(), mesh, pt::schedule(BP, MP))));
  check_meaning(p);
}

TEST_CASE("section 5.2.3: two entries match, nothing changes, the conflict is recorded") {
  constexpr auto both = pt::manual("B", {{"x", 0}, {"w1", 1}});
  const auto p = pt::partition(chain(), mesh, pt::schedule(data::unsettled(both)));
  CHECK(
      core(p) ==
      R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %xt = loop "B" [#tile<0>] (%rB: range<4>) {
    %xs = slice 0 %x[%rB] : tensor<64x8xf32>
    yield %xs
  } : tensor<256x8xf32>
  %w1t = loop "B" [#tile<1>] (%rB: range<4>) {
    %w1s = slice 1 %w1[%rB] : tensor<8x4xf32>
    yield %w1s
  } : tensor<8x16xf32>
  %x1 = matmul(%xt, %w1t) : tensor<256x16xf32>
  %x2 = matmul(%x1, %w2) : tensor<256x8xf32>
  return %x2 : tensor<256x8xf32>
}
)");
  REQUIRE(p.tactics[0].conflicts == 1);
  const pt::conflict k = p.conflicts_after(0)[0];
  CHECK(k.kind == pt::conflict_kind::several);
  CHECK(k.op == 3);
  CHECK(k.axis == 0);
  CHECK(str(pt::describe_conflict(p.core, pt::value_names(p.core.p), k)) ==
        "%x1 (dot_general) along \"B\": #tile<0> from operand %x by tactic 1 (\"manual\"), and "
        "#tile<1> from operand %w1 by tactic 1 (\"manual\")");
  check_meaning(p);
}

TEST_CASE("section 7.4: amalgamated tactics keep the conflicts that their order would settle") {
  constexpr auto then = pt::manual("B", {{"w1", 1}});
  constexpr auto both = pt::manual("B", {{"x", 0}, {"w1", 1}});
  const auto p =
      pt::partition(chain(), mesh, pt::schedule(pt::amalgamated("BP and more", BP, then)));
  REQUIRE(p.tactics.size() == 1);
  CHECK(str(p.tactics[0].name) == "BP and more");
  CHECK(p.tactics[0].conflicts == 1);
  CHECK(core(p) == core(pt::partition(chain(), mesh, pt::schedule(data::unsettled(both)))));
  check_meaning(p);
  // Tactics that do not conflict give the same program as in a schedule.
  CHECK(core(pt::partition(chain(), mesh, pt::schedule(pt::amalgamated("both", BP, MP)))) ==
        core(pt::partition(chain(), mesh, pt::schedule(BP, MP))));
  // An error of one of the tactics is an error of the schedule.
  constexpr auto wrong = pt::manual("C", {{"x", 0}});
  CHECK_THROWS_WITH_AS(
      pt::partition(chain(), mesh, pt::schedule(pt::amalgamated("wrong", BP, wrong))),
      "S001 tactic: the mesh has no axis \"C\"; known: B, M; did you mean \"B\"?", pt::error);
}

TEST_CASE("section 5.2.3: the order of tactics settles the conflict") {
  constexpr auto then = pt::manual("B", {{"w1", 1}});
  const auto p = pt::partition(chain(), mesh, pt::schedule(BP, then));
  CHECK(
      core(p) ==
      R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %w1t = loop "B" [#tile<1>] (%rB: range<4>) {
    %w1s = slice 1 %w1[%rB] : tensor<8x4xf32>
    yield %w1s
  } : tensor<8x16xf32>
  %x2 = loop "B" [#tile<0>] (%rB: range<4>) {
    %xs = slice 0 %x[%rB] : tensor<64x8xf32>
    %x1s = matmul(%xs, %w1t) : tensor<64x16xf32>
    %x2s = matmul(%x1s, %w2) : tensor<64x8xf32>
    yield %x2s
  } : tensor<256x8xf32>
  return %x2 : tensor<256x8xf32>
}
)");
  CHECK(p.core.conflicts.empty());
  check_meaning(p);
  // In the opposite order, the matmul is sliced along the other dimension.
  const auto q = pt::partition(chain(), mesh, pt::schedule(then, BP));
  CHECK(
      local(q) ==
      R"(func @main(%x: tensor<64x8xf32>, %w1: tensor<8x4xf32>, %w2: tensor<4x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %xg = all_gather [{"B"}, {}] %x : tensor<256x8xf32>
  %x1 = matmul(%xg, %w1) : tensor<256x4xf32>
  %x2 = matmul(%x1, %w2) : tensor<256x8xf32>
  %x3 = all_reduce <"B"> %x2 : tensor<256x8xf32>
  return %x3 : tensor<256x8xf32>
}
)");
  check_meaning(q);
}

// Lines 4 and 7 of the listing contain slips: 16 / (2 * 8) is 1, as line 4 says, but its axis list
// lacks a quote; and 16x32 over x1 and x2 (8 devices) becomes 128x4, as line 7 says, with "->s".
TEST_CASE("listing 9: collectives by example") {
  constexpr pt::mesh m{{"x1", 2}, {"x2", 4}, {"x3", 8}};
  pt::program p;
  const auto f32 = [](pt::shape s) { return pt::tensor_type{pt::dtype::f32, s}; };
  const auto parameter = [&](std::string_view name, pt::shape s) {
    const pt::value_id v = p.append(pt::def<pt::op::parameter>, {}, {}, f32(s));
    p.ops.back().name = p.intern(name);
    p.inputs.push_back(v);
    return v;
  };
  const auto emit = [&](const pt::op_def& d, pt::value_id x, std::vector<std::int64_t> attrs,
                        pt::shape result) {
    p.outputs.push_back({p.append(d, std::vector{x}, attrs, f32(result)), {}});  // no name: %xN
  };
  const auto a = parameter("a", {16, 500, 40}), b = parameter("b", {8, 10, 16}),
             c = parameter("c", {16, 32});
  const auto max = static_cast<std::int64_t>(pt::combiner::max),
             add = static_cast<std::int64_t>(pt::combiner::add);
  emit(pt::def<pt::op::all_reduce>, a, {add, 0, 1}, {16, 500, 40});
  emit(pt::def<pt::op::all_reduce>, a, {max, 0, 1}, {16, 500, 40});
  emit(pt::def<pt::op::all_slice>, a, {0, 0, 2, 1}, {8, 500, 10});
  emit(pt::def<pt::op::all_slice>, a, {0, 0, 0, 2, 2, 1}, {1, 500, 10});
  emit(pt::def<pt::op::all_gather>, b, {0, 0, 1, 2}, {16, 80, 16});
  emit(pt::def<pt::op::reduce_scatter>, a, {max, 0, 0, 2, 1}, {8, 500, 10});
  emit(pt::def<pt::op::all_to_all>, c, {0, 1, 0, 1}, {128, 4});
  CHECK(
      str(pt::print(p, &m)) ==
      R"(func @main(%a: tensor<16x500x40xf32>, %b: tensor<8x10x16xf32>, %c: tensor<16x32xf32>) attributes {mesh = {"x1":2, "x2":4, "x3":8}} {
  %x1 = all_reduce <"x1", "x2"> %a : tensor<16x500x40xf32>
  %x2 = all_reduce <@max> <"x1", "x2"> %a : tensor<16x500x40xf32>
  %as = all_slice [{"x1"}, {}, {"x2"}] %a : tensor<8x500x10xf32>
  %as2 = all_slice [{"x1", "x3"}, {}, {"x2"}] %a : tensor<1x500x10xf32>
  %bg = all_gather [{"x1"}, {"x3"}, {}] %b : tensor<16x80x16xf32>
  %x3 = reduce_scatter <@max> [{"x1"}, {}, {"x2"}] %a : tensor<8x500x10xf32>
  %x4 = all_to_all {0 -> 1} <"x1", "x2"> %c : tensor<128x4xf32>
  return %x1, %x2, %as, %as2, %bg, %x3, %x4 : tensor<16x500x40xf32>, tensor<16x500x40xf32>, tensor<8x500x10xf32>, tensor<1x500x10xf32>, tensor<16x80x16xf32>, tensor<8x500x10xf32>, tensor<128x4xf32>
}
)");
}

// tests/laws/collectives.cpp has the values of all five collectives, device by device.
TEST_CASE("figure 5: all_slice by rows, then by columns, then all_gather of both") {
  constexpr pt::mesh m{{"x", 2}, {"y", 2}};
  pt::device_program d;
  d.mesh = m;
  pt::program& p = d.local;
  const pt::tensor_type whole{pt::dtype::f32, {16, 16}}, rows{pt::dtype::f32, {8, 16}},
      block{pt::dtype::f32, {8, 8}};
  const auto one = [](pt::value_id v) { return std::vector{v}; };
  const auto attrs = [](std::vector<std::int64_t> a) { return a; };
  const auto a = p.append(pt::def<pt::op::parameter>, {}, {}, whole);
  p.inputs.push_back(a);
  const auto s = p.append(pt::def<pt::op::all_slice>, one(a), attrs({0, 1}), rows);
  const auto t = p.append(pt::def<pt::op::all_slice>, one(s), attrs({1, 0}), block);
  const auto g = p.append(pt::def<pt::op::all_gather>, one(t), attrs({0, 1, 1, 0}), whole);
  // A device's values are row (x, y) of an array (2, 2, local...).
  const auto by_device = [&](pt::value_id v) {
    pt::tensor_type type = p.type(v);
    type.shape = {1, 1, type.shape[0], type.shape[1]};
    p.outputs.push_back({p.append(pt::def<pt::op::reshape>, one(v), {}, type), {}});
    pt::layout l;
    l.push_back(0, 0);
    l.push_back(1, 1);
    d.outputs.push_back(l);
    d.output_types.push_back({type.element, {2, 2, type.shape[2], type.shape[3]}});
  };
  by_device(s);
  by_device(t);
  by_device(g);
  d.inputs.push_back({});
  d.input_types.push_back(whole);
  CHECK(!pt::verify([&] {
    pt::program q = p;  // outputs need names
    for (std::size_t i = 0; i < q.outputs.size(); ++i)
      q.outputs[i].name = q.intern(std::string(1, static_cast<char>('a' + i)));
    return q;
  }()));

  const pt::array numbers = data::fill(whole, [](std::int64_t i) { return i; });
  const pt::results r = pt::emulate(d, numbers);
  const auto at = [](const pt::array& out, int x, int y, int i, int j) {
    const pt::shape& shape = out.shape();
    return out.data<float>()[((x * shape[1] + y) * shape[2] + i) * shape[3] + j];
  };
  for (int x = 0; x < 2; ++x)
    for (int y = 0; y < 2; ++y)
      for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 16; ++j) {
          if (i < 8) CHECK(at(r[0], x, y, i, j) == (8 * y + i) * 16 + j);
          if (i < 8 && j < 8) CHECK(at(r[1], x, y, i, j) == (8 * y + i) * 16 + 8 * x + j);
          CHECK(at(r[2], x, y, i, j) == i * 16 + j);
        }
}

TEST_CASE("section 6.1: lowering before and after fusion") {
  const auto p = pt::partition(residual(), mesh, pt::schedule(BP, MP));
  CHECK(
      core(p) ==
      R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x2 = loop "B" [#tile<0>] (%rB: range<4>) {
    %x2s = loop "M" [#sum] (%rM: range<2>) {
      %xs = slice 0 %x[%rB] : tensor<64x8xf32>
      %w1s = slice 1 %w1[%rM] : tensor<8x8xf32>
      %x1ss = matmul(%xs, %w1s) : tensor<64x8xf32>
      %w2s = slice 0 %w2[%rM] : tensor<8x8xf32>
      %x2ss = matmul(%x1ss, %w2s) : tensor<64x8xf32>
      yield %x2ss
    }
    yield %x2s
  } : tensor<256x8xf32>
  %x3 = loop "B" [#tile<0>] (%rB: range<4>) {
    %x2s = slice 0 %x2[%rB] : tensor<64x8xf32>
    %xs = slice 0 %x[%rB] : tensor<64x8xf32>
    %x3s = add(%x2s, %xs) : tensor<64x8xf32>
    yield %x3s
  } : tensor<256x8xf32>
  return %x3 : tensor<256x8xf32>
}
)");
  CHECK(
      unfused(p.core) ==
      R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %xs = all_slice [{"B"}, {}] %x : tensor<64x8xf32>
  %w1s = all_slice [{}, {"M"}] %w1 : tensor<8x8xf32>
  %x1 = matmul(%xs, %w1s) : tensor<64x8xf32>
  %w2s = all_slice [{"M"}, {}] %w2 : tensor<8x8xf32>
  %x2 = matmul(%x1, %w2s) : tensor<64x8xf32>
  %x3 = all_reduce <"M"> %x2 : tensor<64x8xf32>
  %x3g = all_gather [{"B"}, {}] %x3 : tensor<256x8xf32>
  %x3gs = all_slice [{"B"}, {}] %x3g : tensor<64x8xf32>
  %xs2 = all_slice [{"B"}, {}] %x : tensor<64x8xf32>
  %x4 = add(%x3gs, %xs2) : tensor<64x8xf32>
  %x4g = all_gather [{"B"}, {}] %x4 : tensor<256x8xf32>
  return %x4g : tensor<256x8xf32>
}
)");
  CHECK(
      local(p) ==
      R"(func @main(%x: tensor<64x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = matmul(%x, %w1) : tensor<64x8xf32>
  %x2 = matmul(%x1, %w2) : tensor<64x8xf32>
  %x3 = all_reduce <"M"> %x2 : tensor<64x8xf32>
  %x4 = add(%x3, %x) : tensor<64x8xf32>
  return %x4 : tensor<64x8xf32>
}
)");
  check_meaning(p);
}

TEST_CASE("section 8: a matrix times its transpose; without and with atomic on a tag") {
  constexpr pt::mesh m{{"M", 16}};
  const auto source = [] {
    return pt::trace([](auto x) { return matmul(x, tag("transposed", pt::transpose<1, 0>(x))); },
                     pt::input<float, 256, 256>("x"));
  };
  const auto open =
      pt::partition(source(), m, pt::schedule(data::unsettled(pt::manual("M", {{"x", 0}}))));
  REQUIRE(open.core.conflicts.size() == 1);
  CHECK(
      str(pt::describe_conflict(open.core, pt::value_names(open.core.p), open.core.conflicts[0])) ==
      "%x2 (dot_general) along \"M\": #tile<0> from operand %x by tactic 1 (\"manual\"), and "
      "#tile<1> from operand %transposed by tactic 1 (\"manual\")");

  const auto p = pt::partition(
      source(), m, pt::schedule(pt::manual("M", {{"transposed", pt::replicated}, {"x", 0}})));
  CHECK(p.core.conflicts.empty());
  CHECK(str(pt::print_actions(p.core, p.source)) ==
        "atomic<%transposed, \"M\">; tile<%x, 0, \"M\">; propagate;\n");
  CHECK(core(p) == R"(func @main(%x: tensor<256x256xf32>) attributes {mesh = {"M":16}} {
  %x1 = loop "M" [#tile<1>] (%rM: range<16>) {
    %xs = slice 0 %x[%rM] : tensor<16x256xf32>
    %x1s = transpose(%xs) {dims=[1, 0]} : tensor<256x16xf32>
    yield %x1s
  } : tensor<256x256xf32>
  %transposed = loop "M" [any] (%rM: range<16>) {
    %transposeds = tag "transposed" %x1 : tensor<256x256xf32>
    yield %transposeds
  } : tensor<256x256xf32>
  %x2 = loop "M" [#tile<0>] (%rM: range<16>) {
    %xs = slice 0 %x[%rM] : tensor<16x256xf32>
    %x2s = matmul(%xs, %transposed) : tensor<16x256xf32>
    yield %x2s
  } : tensor<256x256xf32>
  return %x2 : tensor<256x256xf32>
}
)");
  CHECK(local(p) == R"(func @main(%x: tensor<16x256xf32>) attributes {mesh = {"M":16}} {
  %x1 = transpose(%x) {dims=[1, 0]} : tensor<256x16xf32>
  %x1g = all_gather [{}, {"M"}] %x1 : tensor<256x256xf32>
  %x2 = matmul(%x, %x1g) : tensor<16x256xf32>
  return %x2 : tensor<16x256xf32>
}
)");
  check_meaning(p);
}

TEST_CASE("section 8: a reshape is tiled as far as possible, its next dimension by the rest") {
  const auto source = [] {
    return pt::trace([](auto x) { return pt::reshape<4, 4>(x); }, pt::input<float, 16>("x"));
  };
  constexpr auto A = pt::manual("A", {{"x", 0}});
  const auto four = pt::partition(source(), pt::mesh{{"A", 4}}, pt::schedule(A));
  CHECK(core(four) == R"(func @main(%x: tensor<16xf32>) attributes {mesh = {"A":4}} {
  %x1 = loop "A" [#tile<0>] (%rA: range<4>) {
    %xs = slice 0 %x[%rA] : tensor<4xf32>
    %x1s = reshape(%xs) : tensor<1x4xf32>
    yield %x1s
  } : tensor<4x4xf32>
  return %x1 : tensor<4x4xf32>
}
)");
  check_meaning(four);
  const auto eight = pt::partition(source(), pt::mesh{{"A", 8}}, pt::schedule(A));
  CHECK(eight.core.conflicts.empty());
  CHECK(local(eight) == R"(func @main(%x: tensor<2xf32>) attributes {mesh = {"A":8}} {
  %x1 = reshape(%x) : tensor<1x2xf32>
  return %x1 : tensor<1x2xf32>
}
)");
  check_meaning(eight);
  // The paper's workaround, by hand: the axis as two axes.
  const auto split =
      pt::partition(source(), pt::mesh{{"A1", 4}, {"A2", 2}},
                    pt::schedule(pt::manual("A1", {{"x", 0}}), pt::manual("A2", {{"x", 0}})));
  CHECK(local(split) == R"(func @main(%x: tensor<2xf32>) attributes {mesh = {"A1":4, "A2":2}} {
  %x1 = reshape(%x) : tensor<1x2xf32>
  return %x1 : tensor<1x2xf32>
}
)");
  check_meaning(split);
}
