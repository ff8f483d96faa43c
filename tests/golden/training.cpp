// A training step of two layers with momentum: Z2 and Z3 compared, and both with model parallelism.
#include <doctest/doctest.h>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

struct weights {
  BOOST_HANA_DEFINE_STRUCT(weights, (pt::tensor<float, 8, 16>, w1), (pt::tensor<float, 16, 8>, w2));
};

constexpr auto step = [](auto params, auto momentum, auto x, auto y) {
  const auto [loss, gradients] = pt::value_and_grad(
      [&](const auto& p) {
        const auto e = matmul(matmul(x, p.w1), p.w2) - y;
        return pt::sum(e * e);
      },
      params);
  const auto m =
      pt::map_leaves([](const auto& v, const auto& g) { return v * 2 + g; }, momentum, gradients);
  const auto p = pt::map_leaves([](const auto& w, const auto& d) { return w - d; }, params, m);
  return std::tuple{pt::output("params", p), pt::output("momentum", m), pt::output("loss", loss)};
};
pt::program source() {
  return pt::trace(step, pt::input<weights>("params"), pt::input<weights>("momentum"),
                   pt::input<float, 32, 8>("x"), pt::input<float, 32, 8>("y"));
}

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}, {"y", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"params.w1", 1}, {"params.w2", 0}}, "MP");
constexpr auto Z2 =
    pt::manual("B", {{"params", pt::replicated}, {"momentum", pt::first_divisible_dim}}, "Z2");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"momentum", pt::first_divisible_dim}}, "Z3");

std::string local(const pt::partitioned& p) { return str(pt::print(p.device.local, &p.mesh())); }

/// Values in [-1, 1] keep the loss below 2^24, so sums are exact in every order.
void check_meaning(const pt::partitioned& p) {
  data::random r{7};
  std::vector<pt::array> x;
  for (int i = 0; i < p.source.input_count(); ++i)
    x.push_back(data::integers(p.source.input_type(i), r, -1, 1));
  const pt::results expected = pt::evaluate(p.source, x);
  CHECK(expected["loss"].item<float>() > 0);
  CHECK(pt::equal(pt::emulate(p.device, x), expected));
  CHECK(pt::equal(pt::emulate(pt::lower(p.core, {.fuse = false}).device, x), expected));
  pt::core_program again(p.source, p.mesh());
  CHECK(!pt::replay(again, p.source, pt::print_actions(p.core, p.source).view()));
  CHECK(pt::print_core(again) == pt::print_core(p.core));
}

}  // namespace

TEST_CASE("BP: one all_reduce per parameter and one for the loss") {
  const auto p = pt::partition(source(), mesh, pt::schedule(BP));
  CHECK(p.collectives == pt::collectives{.all_reduce = 2 + 1});
  check_meaning(p);
}

TEST_CASE("BP, Z2: gradients are scattered, the state is sharded, new parameters are gathered") {
  const auto p = pt::partition(source(), mesh, pt::schedule(BP, Z2));
  CHECK(
      local(p) ==
      R"(func @main(%params.w1: tensor<8x16xf32>, %params.w2: tensor<16x8xf32>, %momentum.w1: tensor<2x16xf32>, %momentum.w2: tensor<4x8xf32>, %x: tensor<8x8xf32>, %y: tensor<8x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = matmul(%x, %params.w1) : tensor<8x16xf32>
  %x2 = matmul(%x1, %params.w2) : tensor<8x8xf32>
  %x3 = subtract(%x2, %y) : tensor<8x8xf32>
  %x4 = multiply(%x3, %x3) : tensor<8x8xf32>
  %x5 = reduce(%x4) {add, dims=[0, 1]} : tensor<f32>
  %loss = all_reduce <"B"> %x5 : tensor<f32>
  %x6 = constant {2} : tensor<f32>
  %x7 = multiply(%momentum.w2, %x6) : tensor<4x8xf32>
  %x8 = constant {1} : tensor<f32>
  %x9 = broadcast_in_dim(%x8) {dims=[]} : tensor<8x8xf32>
  %x10 = multiply(%x9, %x3) : tensor<8x8xf32>
  %x11 = multiply(%x9, %x3) : tensor<8x8xf32>
  %x12 = add(%x10, %x11) : tensor<8x8xf32>
  %x13 = dot_general(%x1, %x12) {contract=[0]x[0]} : tensor<16x8xf32>
  %x14 = reduce_scatter [{"B"}, {}] %x13 : tensor<4x8xf32>
  %momentum.w2' = add(%x7, %x14) : tensor<4x8xf32>
  %x15 = multiply(%momentum.w1, %x6) : tensor<2x16xf32>
  %x16 = dot_general(%x12, %params.w2) {contract=[1]x[1]} : tensor<8x16xf32>
  %x17 = dot_general(%x, %x16) {contract=[0]x[0]} : tensor<8x16xf32>
  %x18 = reduce_scatter [{"B"}, {}] %x17 : tensor<2x16xf32>
  %momentum.w1' = add(%x15, %x18) : tensor<2x16xf32>
  %params.w2s = all_slice [{"B"}, {}] %params.w2 : tensor<4x8xf32>
  %x19 = subtract(%params.w2s, %momentum.w2') : tensor<4x8xf32>
  %params.w2' = all_gather [{"B"}, {}] %x19 : tensor<16x8xf32>
  %params.w1s = all_slice [{"B"}, {}] %params.w1 : tensor<2x16xf32>
  %x20 = subtract(%params.w1s, %momentum.w1') : tensor<2x16xf32>
  %params.w1' = all_gather [{"B"}, {}] %x20 : tensor<8x16xf32>
  return %params.w1', %params.w2', %momentum.w1', %momentum.w2', %loss : tensor<8x16xf32>, tensor<16x8xf32>, tensor<2x16xf32>, tensor<4x8xf32>, tensor<f32>
}
)");
  check_meaning(p);
}

TEST_CASE("BP, Z3: parameters are sharded too, and gathered before each use") {
  const auto p = pt::partition(source(), mesh, pt::schedule(BP, Z3));
  CHECK(
      local(p) ==
      R"(func @main(%params.w1: tensor<2x16xf32>, %params.w2: tensor<4x8xf32>, %momentum.w1: tensor<2x16xf32>, %momentum.w2: tensor<4x8xf32>, %x: tensor<8x8xf32>, %y: tensor<8x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %params.w1g = all_gather [{"B"}, {}] %params.w1 : tensor<8x16xf32>
  %x1 = matmul(%x, %params.w1g) : tensor<8x16xf32>
  %params.w2g = all_gather [{"B"}, {}] %params.w2 : tensor<16x8xf32>
  %x2 = matmul(%x1, %params.w2g) : tensor<8x8xf32>
  %x3 = subtract(%x2, %y) : tensor<8x8xf32>
  %x4 = multiply(%x3, %x3) : tensor<8x8xf32>
  %x5 = reduce(%x4) {add, dims=[0, 1]} : tensor<f32>
  %loss = all_reduce <"B"> %x5 : tensor<f32>
  %x6 = constant {2} : tensor<f32>
  %x7 = multiply(%momentum.w2, %x6) : tensor<4x8xf32>
  %x8 = constant {1} : tensor<f32>
  %x9 = broadcast_in_dim(%x8) {dims=[]} : tensor<8x8xf32>
  %x10 = multiply(%x9, %x3) : tensor<8x8xf32>
  %x11 = multiply(%x9, %x3) : tensor<8x8xf32>
  %x12 = add(%x10, %x11) : tensor<8x8xf32>
  %x13 = dot_general(%x1, %x12) {contract=[0]x[0]} : tensor<16x8xf32>
  %x14 = reduce_scatter [{"B"}, {}] %x13 : tensor<4x8xf32>
  %momentum.w2' = add(%x7, %x14) : tensor<4x8xf32>
  %x15 = multiply(%momentum.w1, %x6) : tensor<2x16xf32>
  %params.w2g2 = all_gather [{"B"}, {}] %params.w2 : tensor<16x8xf32>
  %x16 = dot_general(%x12, %params.w2g2) {contract=[1]x[1]} : tensor<8x16xf32>
  %x17 = dot_general(%x, %x16) {contract=[0]x[0]} : tensor<8x16xf32>
  %x18 = reduce_scatter [{"B"}, {}] %x17 : tensor<2x16xf32>
  %momentum.w1' = add(%x15, %x18) : tensor<2x16xf32>
  %params.w2' = subtract(%params.w2, %momentum.w2') : tensor<4x8xf32>
  %params.w1' = subtract(%params.w1, %momentum.w1') : tensor<2x16xf32>
  return %params.w1', %params.w2', %momentum.w1', %momentum.w2', %loss : tensor<2x16xf32>, tensor<4x8xf32>, tensor<2x16xf32>, tensor<4x8xf32>, tensor<f32>
}
)");
  check_meaning(p);
}

TEST_CASE("BP, MP: one more all_reduce, of the activations; the state follows the parameters") {
  const auto p = pt::partition(source(), mesh, pt::schedule(BP, MP));
  CHECK(p.collectives == pt::collectives{.all_reduce = 2 + 1 + 1});
  const auto s = pt::summarize(p);
  CHECK(s.input("momentum.w1").local_shape == pt::shape{8, 8});
  CHECK(s.input("momentum.w2").local_shape == pt::shape{8, 8});
  CHECK(s.output("params.w1").local_shape == pt::shape{8, 8});
  check_meaning(p);
}

TEST_CASE("Z2 and Z3 on top of BP and MP") {
  const auto z2 = pt::partition(source(), mesh, pt::schedule(BP, MP, Z2));
  CHECK(z2.collectives == pt::collectives{.all_gather = 2, .all_reduce = 2, .reduce_scatter = 2});
  CHECK(pt::summarize(z2).input("params.w2").local_shape == pt::shape{8, 8});
  CHECK(pt::summarize(z2).input("momentum.w2").local_shape == pt::shape{2, 8});
  check_meaning(z2);
  const auto z3 = pt::partition(source(), mesh, pt::schedule(BP, MP, Z3));
  CHECK(z3.collectives == pt::collectives{.all_gather = 3, .all_reduce = 2, .reduce_scatter = 2});
  CHECK(pt::summarize(z3).input("params.w2").local_shape == pt::shape{2, 8});
  // Model before batch: the axes slice dimension 0 of w2 in the order of the tactics.
  CHECK(str(pt::print_core(z3.core)).find("%params.w2t = loop \"M\" [#tile<0>]") !=
        std::string::npos);
  // A step returns its state in the layout in which the next step accepts it.
  const auto s = pt::summarize(z3);
  for (std::string_view name : {"params.w1", "params.w2", "momentum.w1", "momentum.w2"})
    CHECK(s.input(name).sharding == s.output(name).sharding);
  check_meaning(z3);
}
